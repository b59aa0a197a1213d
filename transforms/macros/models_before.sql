{#- Apart from stages.sql and survivors.sql because sqlfluff lets a `return` end every macro of its file that called it. -#}

{#- Models of the stages before one, in order; without one, of all stages. -#}
{% macro models_before(stage=none) -%}
    {%- set names = stages() | map(attribute="name") | list -%}
    {%- if stage is not none and stage not in names -%}
        {{ exceptions.raise_compiler_error("no stage " ~ stage ~ "; expected one of " ~ names | join(", ")) }}
    {%- endif -%}
    {%- set models = stages() | map(attribute="model") | list -%}
    {{ return(models if stage is none else models[:names.index(stage)]) }}
{%- endmacro %}
