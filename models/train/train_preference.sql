{{ config(materialized="extended", key="example_id", follows=["examples", "decisions"]) }}
with examples as (

    {{ taken_by("train_preference") }}

),

final as (

    select
        example_id,
        source,
        kind,
        license,
        messages,
        chosen,
        rejected,
        tools
    from examples

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
