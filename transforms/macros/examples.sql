{#- Columns that every staging model of examples gives, in this order; `text` is a document's, null for other shapes. -#}
{% macro staged_columns() -%}
    example_id, kind, shape, source, format, record_ids, license, created_at, messages, tools, chosen, rejected, label,
    suite, split, item_key, question, choices, answer, outcome, provenance, document, text, problem
{%- endmacro %}


{#- Typed nulls for the staged columns that a staging model has nothing for: `staged_null("choices")`. -#}
{% macro staged_null(column) -%}
    {%- set message -%}
        struct(
            role varchar, content varchar, reasoning varchar,
            tool_calls struct(id varchar, name varchar, arguments varchar)[],
            tool_call_id varchar, name varchar, content_parts varchar, weight bigint
        )[]
    {%- endset -%}
    {%- set types = {
        "created_at": "timestamptz",
        "messages": message,
        "chosen": message,
        "rejected": message,
        "label": "boolean",
        "choices": "varchar[]",
        "outcome": "struct(reward double, feedback varchar, verdict varchar)",
        "provenance": "struct(generator_model varchar, generator_version varchar, prompt_id varchar, prompt_hash varchar,"
            ~ " seed bigint, temperature double, top_p double, parent_ids varchar[], verifier varchar,"
            ~ " verifier_verdict varchar)",
        "document": "struct(url varchar, content_type varchar, encoding varchar, repair varchar, extractor varchar)",
    } -%}
    cast(null as {{ types.get(column, "varchar") }}) as {{ column }}
{%- endmacro %}


{#- What one role says in a list of messages, thinking first, turns apart by an empty line; null where it says nothing. -#}
{% macro spoken_by(turns, role) -%}
    nullif(array_to_string(
        list_filter(
            list_transform(
                list_filter({{ turns }}, lambda m: m.role = '{{ role }}'),
                lambda m: concat_ws(e'\n\n', nullif(m.reasoning, ''), nullif(m.content, ''))
            ),
            lambda said: said != ''
        ),
        e'\n\n'
    ), '')
{%- endmacro %}


{#- Whether a list of messages has an assistant turn that says or calls something and is not weighted 0. -#}
{% macro has_trainable_turn(messages) -%}
    coalesce(len(list_filter(
        {{ messages }},
        lambda m: m.role = 'assistant' and coalesce(m.weight, 1) > 0
            and (coalesce(m.content, '') != '' or coalesce(m.reasoning, '') != '' or m.tool_calls is not null)
    )), 0) > 0
{%- endmacro %}


{#- Shape of a unit of the kernel `chat`. -#}
{% macro unit_shape(unit) -%}
    case
        when {{ unit }}.chosen is not null or {{ unit }}.rejected is not null then 'pair'
        when {{ unit }}.label is not null then 'unpaired'
        else 'chat'
    end
{%- endmacro %}
