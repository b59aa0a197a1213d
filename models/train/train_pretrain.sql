{{ config(materialized="extended", key="example_id", follows=["examples", "decisions"]) }}
with examples as (

    {{ taken_by("train_pretrain") }}

),

final as (

    select
        example_id,
        source,
        kind,
        license,
        document.url as url,
        text
    from examples

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
