{#- Apart from stages.sql because sqlfluff lets a `return` end every macro of its file that called it. -#}

{#- SELECT of the ids of the examples that no stage before this one dropped. -#}
{% macro survivors(stage) -%}
    {%- set names = stages() | map(attribute="name") | list -%}
    {%- if stage not in names -%}
        {{ exceptions.raise_compiler_error("no stage " ~ stage ~ "; expected one of " ~ names | join(", ")) }}
    {%- endif -%}
    select example_id from {{ ref("examples") }}
    {%- for earlier in stages()[:names.index(stage)] %}
    except
    select example_id from {{ ref(earlier.model) }}
    {%- endfor %}
{%- endmacro %}


{#- SELECT of what the stages dropped, all together. One row per stage and example. -#}
{% macro dropped_by_stages() -%}
    {%- for stage in stages() %}
    select
        '{{ stage.name }}' as stage,
        example_id,
        reason,
        kept_id,
        evidence
    from {{ ref(stage.model) }}
    {{ "union all" if not loop.last }}
    {%- endfor %}
{%- endmacro %}
