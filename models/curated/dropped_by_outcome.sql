{{ config(materialized="extended", key="example_id", follows=["example_facts"] + models_before("outcome")) }}
-- Examples that no table of train/ and eval/ takes, by the first thing that is missing.
with survivors as (

    {{ survivors("outcome") }}

),

final as (

    select
        facts.example_id,
        facts.unused_reason as reason,
        cast(null as varchar) as kept_id,
        cast(null as varchar) as evidence
    from {{ ref("example_facts") }} as facts
    inner join survivors on facts.example_id = survivors.example_id
    where facts.unused_reason is not null

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
