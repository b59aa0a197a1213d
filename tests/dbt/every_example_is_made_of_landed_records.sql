-- Examples that name a record which did not land as of their kind and source, or none at all.
with landed as (

    {{ landed_ids() }}

),

used as (

    select
        example_id,
        kind,
        source,
        unnest(if(len(record_ids) = 0, [null], record_ids)) as record_id
    from {{ ref("examples") }}

)

select used.*
from used
left join landed
    on
        used.record_id = landed.record_id
        and used.kind = landed.kind
        and used.source = landed.source
where landed.record_id is null
