-- Files whose counts do not sum, and sources that have fewer rows than their files' counts say. (More there may be:
-- of a landing that was killed after its records and before its counts.)
with files as (

    select
        kind,
        source,
        path,
        read,
        landed,
        already,
        rejected,
        coalesce(list_sum(cast(json_extract(skipped, '$.*') as bigint[])), 0) as skipped
    from {{ source("raw", "landings") }}

),

counted as (

    select
        kind,
        source,
        sum(landed) as landed,
        sum(rejected) as rejected
    from files
    group by kind, source

),

records as (

    {{ landed_ids() }}
    union all
    select
        kind,
        source,
        cast(null as varchar) as record_id
    from {{ source("raw", "rejects") }}

),

rows_there as (

    select
        kind,
        source,
        count(record_id) as landed,
        count(*) - count(record_id) as rejected
    from records
    group by kind, source

)

select
    kind,
    source,
    path as problem
from files
where read != landed + already + rejected + skipped

union all

select
    counted.kind,
    counted.source,
    'counted ' || counted.landed || ' and ' || counted.rejected || ' rejects; there are '
    || coalesce(rows_there.landed, 0) || ' and ' || coalesce(rows_there.rejected, 0) as problem
from counted
left join rows_there on counted.kind = rows_there.kind and counted.source = rows_there.source
where counted.landed > coalesce(rows_there.landed, 0) or counted.rejected > coalesce(rows_there.rejected, 0)
