{#- Columns that every staging model of examples gives, in this order; `text` is a document's, null for other shapes. -#}
{% macro staged_columns() -%}
    example_id, kind, shape, source, format, record_ids, trace_id, license, created_at, messages, tools, chosen, rejected,
    label, suite, split, is_protected, item_key, question, choices, answer, outcome, provenance, document, text, problem
{%- endmacro %}


{#- Typed nulls for the staged columns that a staging model has nothing for: `staged_nulls("chat", "text")`. -#}
{#- names: columns, `chat` for those of a chat or pair, `item` for those of a benchmark's item. -#}
{#- tests/models/test_macros.py holds the types to the contract curated/examples. -#}
{% macro staged_nulls() -%}
    {%- set message -%}
        struct(
            role varchar, content varchar, reasoning varchar,
            tool_calls struct(id varchar, name varchar, arguments varchar)[],
            tool_call_id varchar, name varchar, content_parts varchar, weight bigint
        )[]
    {%- endset -%}
    {%- set types = {
        "messages": message,
        "chosen": message,
        "rejected": message,
        "label": "boolean",
        "is_protected": "boolean",
        "choices": "varchar[]",
        "outcome": "struct(reward double, feedback varchar, verdict varchar)",
        "document": "struct(url varchar, content_type varchar, encoding varchar, repair varchar, extractor varchar)",
    } -%}
    {%- set groups = {
        "chat": ["messages", "tools", "chosen", "rejected", "label"],
        "item": ["suite", "split", "is_protected", "item_key", "question", "choices", "answer"],
    } -%}
    {%- for name in varargs %}
    {%- set last = loop.last -%}
    {%- for column in groups.get(name, [name]) %}
    cast(null as {{ types.get(column, "varchar") }}) as {{ column }}
    {{- "," if not (last and loop.last) }}
    {%- endfor %}
    {%- endfor %}
{%- endmacro %}


{#- What one role says in a list of messages, thinking first, turns apart by an empty line; null where it says nothing. -#}
{% macro spoken_by(turns, role) -%}
    nullif(array_to_string(
        list_filter(
            list_transform(
                list_filter({{ turns }}, lambda m: m.role = '{{ role }}'),
                lambda m: concat_ws(e'\n\n', nullif(m.reasoning, ''), nullif(m.content, ''))
            ),
            lambda turn_text: turn_text != ''
        ),
        e'\n\n'
    ), '')
{%- endmacro %}


{#- Whether a turn trains: one of an assistant that says or calls something and is not weighted 0. -#}
{% macro trains(turn) -%}
    {{ turn }}.role = 'assistant' and coalesce({{ turn }}.weight, 1) > 0 and (
        coalesce({{ turn }}.content, '') != '' or coalesce({{ turn }}.reasoning, '') != ''
        or {{ turn }}.tool_calls is not null
    )
{%- endmacro %}


{#- Whether a list of messages has a turn that trains. -#}
{% macro has_trainable_turn(messages) -%}
    coalesce(len(list_filter({{ messages }}, lambda m: {{ trains("m") }})), 0) > 0
{%- endmacro %}


{#- Place of the first user turn, from 1; null where there is none. -#}
{% macro first_user_turn(messages) -%}
    list_position(list_transform({{ messages }}, lambda m: m.role), 'user')
{%- endmacro %}


{#- Whether a turn trains that answers a user: without a question before it there is nothing to learn an answer to. -#}
{% macro answers_a_user(messages) -%}
    {{ has_trainable_turn(messages ~ "[" ~ first_user_turn(messages) ~ " + 1:]") }}
{%- endmacro %}


{#- A chat that has a turn that trains, without what follows the last one: users say goodbye to what is judged. -#}
{% macro until_last_answer(messages) -%}
    list_slice({{ messages }}, 1, len({{ messages }}) + 1 - list_position(
        list_reverse(list_transform({{ messages }}, lambda m: {{ trains("m") }})), true
    ))
{%- endmacro %}


{#- The tables that models are tuned on. -#}
{% macro train_tables() -%}
    {{ return(["train_sft", "train_preference", "train_unpaired", "train_pretrain"]) }}
{%- endmacro %}


{#- The examples that a table of train/ or eval/ takes. -#}
{% macro taken_by(use) -%}
    select examples.*
    from {{ ref("decisions") }} as decisions
    inner join {{ ref("examples") }} as examples on decisions.example_id = examples.example_id
    where list_contains(decisions.uses, '{{ use }}')
{%- endmacro %}


{#- Shape of a unit of the kernel `chat`. -#}
{% macro unit_shape(unit) -%}
    case
        when {{ unit }}.chosen is not null or {{ unit }}.rejected is not null then 'pair'
        when {{ unit }}.label is not null then 'unpaired'
        else 'chat'
    end
{%- endmacro %}
