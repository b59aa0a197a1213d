{{ config(
    materialized="extended", key="example_id", follows=["example_facts", "contamination_hits"] + models_before()
) }}
-- The first stage that dropped an example, or the tables that take it. Stages are models; this is their union.
with examples as (

    select
        example_id,
        kind,
        source,
        shape,
        uses
    from {{ ref("example_facts") }}

),

dropped as (

    {{ dropped_by_stages() }}

),

final as (

    select
        examples.example_id,
        examples.kind,
        examples.source,
        examples.shape,
        dropped.example_id is null as kept,
        case when dropped.example_id is null then examples.uses end as uses,
        dropped.stage,
        dropped.reason,
        dropped.kept_id,
        case when dropped.example_id is null then excuses.evidence else dropped.evidence end as evidence
    from examples
    left join dropped on examples.example_id = dropped.example_id
    left join {{ ref("int_contamination__excuses") }} as excuses on examples.example_id = excuses.example_id

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
