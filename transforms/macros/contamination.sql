{#- Why a hit of `contamination_hits` drops nothing, as the evidence of a decision. -#}
{% macro excuse(hits) -%}
    format(
        '{}: texts of the lake that hold "{}": {}', {{ hits }}.benchmark, {{ hits }}.ngram, {{ hits }}.num_texts
    )
{%- endmacro %}
