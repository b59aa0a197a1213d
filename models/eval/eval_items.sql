{{ config(materialized="extended", key="example_id", follows=["examples", "decisions"]) }}
with examples as (

    {{ taken_by("eval_items") }}

),

final as (

    select
        example_id,
        source,
        kind,
        license,
        suite,
        split,
        item_key,
        question,
        choices,
        answer
    from examples

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
