{#- Notes in _lake.built what wrote the workspace; `lake publish` wants the last row to be a whole build without failure. -#}

{#- Whether all of the project runs: retry and default selectors select without saying so in their flags. -#}
{% macro runs_everything() -%}
    {%- set wanted = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type in ("model", "seed", "snapshot", "test") -%}
        {%- if node.resource_type == "model" or flags.WHICH == "build" -%}{%- do wanted.append(node.unique_id) -%}{%- endif -%}
    {%- endfor -%}
    {%- set missing = wanted | reject("in", selected_resources) | list -%}
    {%- set sampled = invocation_args_dict.get("empty") or invocation_args_dict.get("sample") -%}
    {{- return(flags.WHICH in ("build", "run") and not missing and not sampled) -}}
{%- endmacro %}


{#- A whole build or run pins the newest raw versions; everything else keeps the pins. Only a whole build (seeds, models and
    tests) is noted with an empty selection. -#}
{% macro note_start() -%}
    {%- if execute and flags.WHICH != "test" -%}
        {%- set everything = runs_everything() -%}
        {%- if everything -%}{%- do pin_newest() -%}{%- endif -%}
        {%- set command = invocation_args_dict.get("invocation_command") or "dbt " ~ flags.WHICH -%}
        insert into _lake.built
        select
            '{{ invocation_id }}', '{{ flags.WHICH }}',
            '{{ "" if everything and flags.WHICH == "build" else command | replace("'", "''") }}',
            ({{ pins_digest() }}), project_digest, null, now()
        from _lake.session
    {%- endif -%}
{%- endmacro %}


{% macro pin_newest() -%}
    {%- for row in run_query("select statement from _lake.fresh order by name") -%}
        {%- do run_query(row[0]) -%}
    {%- endfor -%}
    {%- do run_query("delete from _lake.pins") -%}
    {%- do run_query("insert into _lake.pins select name, version from _lake.fresh") -%}
    {%- do run_query("update _lake.base set release = (select release from _lake.session)") -%}
    {#- After the raw views that it reads. -#}
    {%- for row in run_query("select base from _lake.session") -%}
        {%- do run_query(row[0]) -%}
    {%- endfor -%}
{%- endmacro %}


{#- The same as lake.releases.workspace.pins_digest. -#}
{% macro pins_digest() -%}
    select {{ h_of_rows("(name || ' ' || coalesce(cast(version as varchar), ''))", "name") }}
    from _lake.pins
{%- endmacro %}


{% macro note_end(results) -%}
    {%- if execute and flags.WHICH != "test" -%}
        {%- set failed = results | rejectattr("status", "in", ["success", "pass", "warn", "no-op"]) | list -%}
        update _lake.built
        set failures = {{ failed | length }}, built_at = now()
        where invocation_id = '{{ invocation_id }}'
    {%- endif -%}
{%- endmacro %}
