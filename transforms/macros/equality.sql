{#- Unicode's White_Space, as the inside of a character class; `transforms.text.words` has the same. -#}
{% macro white_space() -%}
    \x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}
{%- endmacro %}


{#- Whether a text holds nothing but white space; null of null. -#}
{% macro is_blank(text) -%}
    not regexp_matches({{ text }}, '[^{{ white_space() }}]')
{%- endmacro %}


{#- NFC, runs of white space as one space and none at the ends: what exact equality compares (`transforms.text.words.folded`). -#}
{% macro folded(text) -%}
    trim(regexp_replace(nfc_normalize({{ text }}), '[{{ white_space() }}]+', ' ', 'g'), ' ')
{%- endmacro %}


{#- What is compared of messages: everything but the ids of calls, which every run draws anew. -#}
{% macro folded_messages(messages) -%}
    list_transform({{ messages }}, lambda m: struct_pack(
        role := m.role,
        content := {{ folded("coalesce(m.content, '')") }},
        reasoning := {{ folded("coalesce(m.reasoning, '')") }},
        tool_calls := list_transform(m.tool_calls, lambda c: struct_pack(
            name := {{ folded("c.name") }}, arguments := {{ folded("c.arguments") }}
        )),
        name := {{ folded("m.name") }},
        content_parts := {{ folded("m.content_parts") }},
        weight := m.weight
    ))
{%- endmacro %}


{#- Equal for examples that are exact duplicates: H over the shape and the whole of an example. -#}
{% macro exact_key(examples) -%}
    {{ h([
        examples ~ ".shape",
        "cast(to_json(struct_pack("
            ~ "messages := " ~ folded_messages(examples ~ ".messages")
            ~ ", chosen := " ~ folded_messages(examples ~ ".chosen")
            ~ ", rejected := " ~ folded_messages(examples ~ ".rejected")
            ~ ", tools := " ~ folded(examples ~ ".tools")
            ~ ", label := " ~ examples ~ ".label"
            ~ ", document := case when " ~ examples ~ ".shape = 'document' then " ~ folded(examples ~ ".text") ~ " end"
            ~ ")) as varchar)",
    ]) }}
{%- endmacro %}
