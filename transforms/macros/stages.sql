{#- Stages in their order: name in decisions and funnel, and the model that holds what it drops of what no stage before it dropped. -#}
{#- A new stage is a line here, its model over `survivors`, its contract, and its name in the contract of decisions. -#}
{% macro stages() -%}
    {{ return([
        {"name": "rule", "model": "dropped_by_rule"},
        {"name": "contamination", "model": "dropped_as_contaminated"},
        {"name": "outcome", "model": "dropped_by_outcome"},
        {"name": "exact", "model": "dropped_as_exact"},
    ]) }}
{%- endmacro %}
