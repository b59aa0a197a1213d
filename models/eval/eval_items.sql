with examples as (

    select * from {{ ref("examples") }}

),

decisions as (

    select example_id from {{ ref("decisions") }} where list_contains(uses, 'eval_items')

),

final as (

    select
        examples.example_id,
        examples.source,
        examples.kind,
        examples.license,
        examples.suite,
        examples.split,
        examples.item_key,
        examples.question,
        examples.choices,
        examples.answer
    from decisions
    inner join examples on decisions.example_id = examples.example_id

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
