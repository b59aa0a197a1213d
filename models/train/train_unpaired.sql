{{ config(materialized="extended", key="example_id", follows=["examples", "decisions"]) }}
with examples as (

    {{ taken_by("train_unpaired") }}

),

final as (

    select
        example_id,
        source,
        kind,
        license,
        -- What is judged ends the chat; of a run that the user ended no more would be left to train on.
        {{ until_last_answer("messages") }} as messages,
        tools,
        coalesce(label, outcome.reward = 1) as label
    from examples

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
