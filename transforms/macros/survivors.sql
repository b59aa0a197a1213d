{#- SELECT of the ids of the examples that no stage before this one dropped. -#}
{% macro survivors(stage) -%}
    select example_id from {{ ref("example_facts") }}
    {%- for model in models_before(stage) %}
    except
    select example_id from {{ ref(model) }}
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
