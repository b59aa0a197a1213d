{#- A number of contracts/reference/thresholds.csv. A missing row is an error: compared with null, nothing would count. -#}
{% macro threshold(name) -%}
    (
        select case when count(*) = 1 then max(value) else error('thresholds.csv has no single row {{ name }}') end
        from {{ ref("thresholds") }}
        where name = '{{ name }}'
    )
{%- endmacro %}


{#- A parameter of a kernel, from the property file that `lake contract sync` writes beside its model. -#}
{% macro kernel_parameter(kernel, name) -%}
    {%- if execute -%}
        {{ graph.nodes["model." ~ project_name ~ ".memo_" ~ kernel].config.meta.parameters[name] }}
    {%- else -%}
        0
    {%- endif -%}
{%- endmacro %}
