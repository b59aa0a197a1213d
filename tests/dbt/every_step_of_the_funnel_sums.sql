-- Steps that lose or invent rows: within the step, towards the one before, at the first and at the last.
with decided as (

    select
        kind,
        source,
        count(*) as examples,
        count(*) filter (where kept) as kept
    from {{ ref("decisions") }}
    group by kind, source

),

steps as (

    select
        *,
        lag(rows_kept) over (partition by kind, source order by step) as rows_before,
        lead(step) over (partition by kind, source order by step) is null as is_last
    from {{ ref("funnel") }}

)

select
    decided.kind,
    decided.source,
    steps.step
from decided
full join steps on decided.kind = steps.kind and decided.source = steps.source
where
    decided.kind is null
    or steps.step is null
    or steps.rows_in != steps.rows_kept + steps.rows_dropped
    or steps.rows_in != coalesce(steps.rows_before, decided.examples)
    or (steps.is_last and steps.rows_kept != decided.kept)
