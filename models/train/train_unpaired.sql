with examples as (

    select * from {{ ref("examples") }}

),

decisions as (

    select example_id from {{ ref("decisions") }} where list_contains(uses, 'train_unpaired')

),

final as (

    select
        examples.example_id,
        examples.source,
        examples.kind,
        examples.license,
        -- What is judged ends the chat; of a run that the user ended no more would be left to train on.
        {{ until_last_answer("examples.messages") }} as messages,
        examples.tools,
        coalesce(examples.label, examples.outcome.reward = 1) as label
    from decisions
    inner join examples on decisions.example_id = examples.example_id

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
