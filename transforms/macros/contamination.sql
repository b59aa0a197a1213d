{#- Why a hit of `contamination_hits` drops nothing, as the evidence of a decision. -#}
{% macro excuse(hits) -%}
    format(
        '{}: texts of the lake that hold "{}": {}', {{ hits }}.benchmark, {{ hits }}.ngram, {{ hits }}.num_texts
    )
{%- endmacro %}


{#- SELECT of the fields of examples that are searched: example_id, field, text_hash. -#}
{#- facts: relation with the columns of example_facts. -#}
{% macro searched_fields(facts) -%}
    {%- for field in ["document", "prompt", "response", "chosen", "rejected"] %}
    select
        example_id,
        '{{ "text" if field == "document" else field }}' as field,
        {{ field }}_hash as text_hash
    from {{ facts }}
    where {{ field }}_hash is not null
    {{ "union all" if not loop.last }}
    {%- endfor %}
{%- endmacro %}


{#- Text of a field of an example as it is searched. -#}
{% macro searched_text(field, examples) -%}
    case {{ field }}
        when 'text' then {{ examples }}.text
        when 'prompt' then {{ examples }}.prompt
        when 'response' then {{ examples }}.response
        when 'chosen' then {{ spoken_by(examples ~ ".chosen", "assistant") }}
        when 'rejected' then {{ spoken_by(examples ~ ".rejected", "assistant") }}
    end
{%- endmacro %}
