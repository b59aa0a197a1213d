-- Chats, pairs and labelled chats of traces that land whole; spans are grouped in stg_traces__spans. One row per unit.
with units as (

    {{ chat_units("stg_traces__records") }}

),

whole as (

    select * from units where unit.span is null

)

select
    {{ example_id("record_id", "n") }} as example_id,
    'traces' as kind,
    {{ unit_shape("unit") }} as shape,
    source,
    format,
    [record_id] as record_ids,
    license,
    coalesce(unit.created_at, observed_at) as created_at,
    unit.messages as messages,
    unit.tools as tools,
    unit.chosen as chosen,
    unit.rejected as rejected,
    unit.label as label,
    {{ staged_null("suite") }},
    {{ staged_null("split") }},
    {{ staged_null("item_key") }},
    {{ staged_null("question") }},
    {{ staged_null("choices") }},
    {{ staged_null("answer") }},
    unit.outcome as outcome,
    {{ provenance("unit.provenance", "options") }} as provenance,
    {{ staged_null("document") }},
    {{ staged_null("text") }},
    unit.problem as problem
from whole
