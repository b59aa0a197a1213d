-- Which model calls of a trace make which conversation, and how many of a call's messages the calls before it hold. The
-- rules, and the reasons for them, are those of transforms/chat/threads.py. One row per call of a conversation.
with calls as (

    select
        *,
        operation = max(operation) over (partition by source, trace_id) as is_speaker
    from {{ ref("stg_traces__span_contents") }}
    where is_current and messages is not null and operation in ('llm', 'agent')

),

traces as (

    select
        source,
        trace_id,
        list(
            [struct_pack(
                keys := keys,
                goes_on := messages[1].role in ('assistant', 'tool'),
                parts := [struct_pack(record_id := record_id, overlap := 0)]
            )]
            order by started_at nulls first, span_id
        ) as calls
    from calls
    where is_speaker -- agents speak where no model call does: 'llm' is greater than 'agent'
    group by source, trace_id

),

reduced as (

    select
        source,
        trace_id,
        list_reduce(calls, lambda threads, call: {{ grow_threads("threads", "call[1]") }}) as threads -- noqa: PRS
    from traces

),

numbered as (

    select
        source,
        trace_id,
        unnest(range(len(threads))) as n,
        unnest(threads).parts as parts
    from reduced

)

select
    source,
    trace_id,
    n,
    unnest(range(len(parts))) as place,
    unnest(parts).record_id as record_id,
    unnest(parts).overlap as overlap
from numbered
