-- Examples without a decision, decisions without an example, and examples with several.
with decided as (

    select
        example_id,
        count(*) as decisions
    from {{ ref("decisions") }}
    group by example_id

)

select
    coalesce(examples.example_id, decided.example_id) as example_id,
    decided.decisions
from {{ ref("examples") }} as examples
full join decided on examples.example_id = decided.example_id
where examples.example_id is null or decided.decisions is distinct from 1
