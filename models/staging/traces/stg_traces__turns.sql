-- The lines of a session log as turns: lines that share a turn's id are blocks of one assistant message. A line follows
-- its parent where both have one time. One row per turn of a session.
with contents as (

    select * from {{ ref("stg_traces__span_contents") }}
    where is_current and messages is not null and operation = 'turn'

),

ordered as (

    select
        contents.*,
        coalesce(contents.started_at = parents.started_at, false) as is_child
    from contents
    left join contents as parents
        on
            contents.source = parents.source
            and contents.trace_id = parents.trace_id
            and contents.parent_id = parents.span_id

),

turns as (

    select
        source,
        trace_id,
        coalesce(turn_id, span_id) as turn_id,
        min(struct_pack(started_at := coalesce(epoch_us(started_at), -1), is_child := is_child, span_id := span_id))
            as place,
        list(record_id order by started_at nulls first, is_child, span_id) as record_ids,
        flatten(list(messages order by started_at nulls first, is_child, span_id)) as messages
    from ordered
    group by all

)

select
    source,
    trace_id,
    turn_id,
    place,
    record_ids,
    case
        when len(record_ids) > 1 and list_bool_and(list_transform(messages, lambda m: m.role = 'assistant'))
            then {{ joined_turn("messages") }}
        else messages
    end as messages
from turns
