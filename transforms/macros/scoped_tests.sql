{#- dbt's own generic tests, which ask of an extended model's rows no more than what the last release has not answered: it held -#}
{#- no row that breaks a test under the same contract, so a row that breaks one now is among what was added, or names a key that -#}
{#- was removed. Every other model is tested whole, as dbt does it. -#}

{#- The key of an extended model whose rows of the release were tested under the contract of now; none for all other relations. -#}
{% macro tested_key(model) -%}
    {%- if execute and model.identifier is defined -%}
        {%- set found = run_query(
            "select key from _lake.extended where relation is not null and is_audited and name = '"
            ~ model.identifier ~ "'"
        ) -%}
        {{ return(found.rows[0][0] if found.rows else none) }}
    {%- endif -%}
    {{ return(none) }}
{%- endmacro %}


{% test unique(model, column_name) %}
    {% if tested_key(model) -%}
    select
        {{ column_name }} as unique_field,
        count(*) as n_records
    from {{ model }}
    where {{ column_name }} in (select {{ column_name }} from {{ beside("_added", model.identifier) }})
    group by all
    having count(*) > 1
    {%- else -%}
    {{ default__test_unique(model, column_name) }}
    {%- endif %}
{% endtest %}


{% test accepted_values(model, column_name, values, quote=True) %}
    {%- set asked = beside("_added", model.identifier) if tested_key(model) else model -%}
    {{ default__test_accepted_values(asked, column_name, values, quote) }}
{% endtest %}


{% test relationships(model, column_name, to, field) %}
    {% if tested_key(model) and tested_key(to) == field -%}
    {#- Few keys are looked for among many, and not the other way round: `not in` would hash all of the other table. -#}
    with wanted as (
        select distinct {{ column_name }} as from_field
        from {{ beside("_added", model.identifier) }}
        where {{ column_name }} is not null
    ),
    went as (
        select {{ field }} as from_field from {{ beside("_removed", to.identifier) }}
    ),
    there as (
        select {{ field }} as from_field
        from {{ to }}
        where {{ field }} in (select from_field from wanted union all select from_field from went)
    )
    select from_field from wanted where from_field not in (select from_field from there)
    union all
    select {{ column_name }} as from_field
    from {{ model }}
    where {{ column_name }} in (select from_field from went where from_field not in (select from_field from there))
    {%- else -%}
    {{ default__test_relationships(model, column_name, to, field) }}
    {%- endif %}
{% endtest %}
