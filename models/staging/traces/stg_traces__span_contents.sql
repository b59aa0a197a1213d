-- Every content of every span, marked where it is the one that counts: the greatest time written in it, then the
-- greatest record id, whatever came first. One row per landed span.
with units as (

    {{ chat_units("stg_traces__records") }}

),

spans as (

    select
        record_id,
        source,
        format,
        license,
        {{ provenance("unit.provenance", "options") }} as provenance,
        unit.messages as messages,
        unit.tools as tools,
        coalesce(unit.created_at, observed_at) as created_at,
        unit.span.trace_id as trace_id,
        unit.span.span_id as span_id,
        unit.span.parent_id as parent_id,
        unit.span.operation as operation,
        unit.span.turn_id as turn_id,
        unit.span.started_at as started_at,
        coalesce(unit.span.updated_at, unit.span.ended_at) as written_at,
        unit.span.keys as keys
    from units
    where unit.span is not null

)

select
    *,
    row_number() over (
        partition by source, trace_id, span_id
        order by written_at desc nulls last, record_id desc
    ) = 1 as is_current
from spans
