{#- The threads of a trace after one more call: `threads` of transforms/chat/threads.py in SQL, on message keys. -#}
{% macro grow_threads(threads, call) -%}
    list_transform(
        [coalesce(
            list_position(list_transform({{ threads }}, lambda t:
                t.keys[:len({{ call }}.keys)] = {{ call }}.keys or {{ call }}.keys[:len(t.keys)] = t.keys
            ), true),
            case when {{ call }}.goes_on then len({{ threads }}) end
        )],
        lambda place: case
            when place is null then list_append({{ threads }}, {{ call }})
            else list_transform({{ threads }}, lambda t, i:
                case when i = place then {{ grow_thread("t", call) }} else t end)
        end
    )[1]
{%- endmacro %}


{#- A thread after a call that begins with it, that it begins with, or that goes on from its end. -#}
{% macro grow_thread(thread, call) -%}
    list_transform(
        [list_max(list_filter(
            range(least(len({{ thread }}.keys), len({{ call }}.keys)) + 1),
            lambda overlap: {{ thread }}.keys[len({{ thread }}.keys) - overlap + 1:] = {{ call }}.keys[:overlap]
                or {{ thread }}.keys[:overlap] = {{ call }}.keys and overlap = len({{ call }}.keys)
        ))],
        lambda overlap: struct_pack(
            keys := {{ thread }}.keys || {{ call }}.keys[overlap + 1:],
            goes_on := {{ thread }}.goes_on,
            parts := list_append(
                {{ thread }}.parts, struct_pack(record_id := {{ call }}.parts[1].record_id, overlap := overlap)
            )
        )
    )[1]
{%- endmacro %}


{#- One list of messages from several lines that are blocks of one assistant turn. -#}
{% macro joined_turn(messages) -%}
    [struct_pack(
        role := 'assistant',
        content := nullif(array_to_string(list_transform({{ messages }}, lambda m: m.content), e'\n'), ''),
        reasoning := nullif(array_to_string(list_transform({{ messages }}, lambda m: m.reasoning), e'\n'), ''),
        tool_calls := nullif(flatten(list_filter(
            list_transform({{ messages }}, lambda m: m.tool_calls), lambda calls: calls is not null
        )), []),
        tool_call_id := cast(null as varchar),
        name := cast(null as varchar),
        content_parts := '[' || nullif(array_to_string(
            list_transform({{ messages }}, lambda m: m.content_parts[2:-2]), ','
        ), '') || ']',
        weight := cast(null as bigint)
    )]
{%- endmacro %}
