-- Traces that land span by span or line by line, put together again. The first conversation of a trace answers for all
-- its records: tool spans, notes, contents that were replaced. One row per conversation of a trace.
with contents as (

    select * from {{ ref("stg_traces__span_contents") }}

),

conversations as (

    select
        calls.source,
        calls.trace_id,
        calls.n,
        list(contents.record_id) as own_records,
        flatten(list(contents.messages[calls.overlap + 1:] order by calls.place)) as messages,
        first(contents.tools order by contents.tools is null, calls.place) as tools,
        first(contents.provenance order by contents.provenance is null, calls.place) as provenance
    from {{ ref("stg_traces__calls") }} as calls
    inner join contents on calls.record_id = contents.record_id and calls.source = contents.source
    group by all

    union all

    select
        turns.source,
        turns.trace_id,
        0 as n,
        [] as own_records,
        flatten(list(turns.messages order by turns.place)) as messages,
        cast(null as varchar) as tools,
        null as provenance
    from {{ ref("stg_traces__turns") }} as turns
    group by all

),

traces as (

    select
        source,
        trace_id,
        min(format) as format,
        string_agg(distinct license, ' AND ' order by license) as license,
        min(created_at) as created_at,
        list(distinct record_id) as record_ids,
        first(provenance order by provenance.generator_model is null, written_at, span_id, record_id) as provenance
    from contents
    group by all

),

elsewhere as (

    select source, trace_id, flatten(list(own_records)) as record_ids from conversations where n > 0 group by all

)

select
    case
        when coalesce(conversations.n, 0) = 0
            then {{ trace_example_id("'traces'", "traces.source", "traces.trace_id") }}
        else {{ h(["'example'", "'traces'", "traces.source", "traces.trace_id", "cast(conversations.n as varchar)"]) }}
    end as example_id,
    'traces' as kind,
    'chat' as shape,
    traces.source,
    traces.format,
    list_sort(case
        when conversations.n > 0 then conversations.own_records
        else list_filter(traces.record_ids, lambda r: not list_contains(coalesce(elsewhere.record_ids, []), r))
    end) as record_ids,
    traces.trace_id,
    traces.license,
    traces.created_at,
    conversations.messages,
    conversations.tools,
    {{ staged_nulls("chosen", "rejected", "label", "item", "outcome", "document", "text") }},
    coalesce(conversations.provenance, traces.provenance) as provenance,
    case when conversations.messages is null then 'no_chat' end as problem
from traces
left join conversations on traces.source = conversations.source and traces.trace_id = conversations.trace_id
left join elsewhere on traces.source = elsewhere.source and traces.trace_id = elsewhere.trace_id
