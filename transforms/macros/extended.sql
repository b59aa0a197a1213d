{#- The materialization `extended`: rows that the last release holds are taken over where nothing changed that they are made of, -#}
{#- the others are made anew. -#}
{#-     config(materialized="extended", key="example_id", follows=["examples", "decisions"]) -#}
{#- key: a column that the model and all that it follows have. A row depends on nothing but the rows of the same key in the -#}
{#-     models that it follows; what else it reads (seeds, macros, views on what it follows) is code, and other code makes all -#}
{#-     rows anew. lake/releases/lineage.py refuses a model that reads a table and does not follow it. -#}
{#- follows: extended models, and tables that end in row_hash; or "records", for the one model that is made of raw records. -#}
{#- The workspace then holds _added.<model> (rows that the release lacks), _removed.<model> (keys of its rows that count no more) -#}
{#- and the view <model>: the release's rows (see lake/releases/base.py) without the removed ones, and the added ones. -#}
{% materialization extended, adapter="duckdb" %}
    {%- set key = config.require("key") -%}
    {%- set follows = config.require("follows") -%}
    {%- set name = this.identifier -%}
    {%- set added, removed, affected = beside("_added", name), beside("_removed", name), beside("_affected", name) -%}
    {%- set bases = release_rows() -%}
    {%- set base = bases[name] -%}
    {%- set part = {"sql": sql} -%}

    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}

    {%- if base is not none and follows == "records" -%}
        {%- do run_query(find_touched_records(key, base)) -%}
        {%- do close_over_conversations(base) -%}
        {%- do run_query(restrict_to_touched(key, removed, base)) -%}
    {%- elif base is not none -%}
        {%- do run_query(find_affected(key, follows, bases, base, removed, affected)) -%}
        {%- for model in follows -%}
            {%- set whole = beside(this.schema, model) -%}
            {%- set some = beside("_affected_" ~ name, model) -%}
            {%- do run_query(restrict(whole, some, key, affected, bases.get(model))) -%}
            {%- do part.update({"sql": part.sql | replace(whole.render(), some.render())}) -%}
        {%- endfor -%}
    {%- endif -%}

    {%- do run_query("drop table if exists " ~ added) -%}
    {%- call statement("main") -%}
        {{ create_table_as(False, added, part.sql) }}
    {%- endcall -%}
    {%- do run_query("reset variable lake_scope") -%}
    {%- do run_query("drop schema if exists " ~ adapter.quote("_affected_" ~ name) ~ " cascade") -%}
    {%- if base is none -%}
        {%- do run_query("create or replace table " ~ removed ~ " as select " ~ key ~ " from " ~ added ~ " limit 0") -%}
    {%- else -%}
        {%- do run_query(leave_equal(key, base, added, removed)) -%}
    {%- endif -%}

    {%- set existing = load_cached_relation(this) -%}
    {%- if existing is not none and not existing.is_view -%}{%- do adapter.drop_relation(existing) -%}{%- endif -%}
    {%- call statement("view") -%}
        create or replace view {{ this }} as
        {% if base is not none -%}
        select * from ({{ base }}) anti join {{ removed }} using ({{ key }})
        union all
        {% endif -%}
        select * from {{ added }}
    {%- endcall -%}

    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {{ adapter.commit() }}
    {{ run_hooks(post_hooks, inside_transaction=False) }}
    {{ return({"relations": [this.incorporate(type="view")]}) }}
{% endmaterialization %}


{#- A relation of this workspace in another schema. -#}
{% macro beside(schema, name) -%}
    {{ return(api.Relation.create(database=target.database, schema=schema, identifier=name, type="table")) }}
{%- endmacro %}


{#- SQL of the release's rows, by extended model; none where no row may be taken over. -#}
{% macro release_rows() -%}
    {%- set rows = {} -%}
    {%- for row in run_query("select name, relation from _lake.extended") -%}
        {%- do rows.update({row[0]: row[1]}) -%}
    {%- endfor -%}
    {{ return(rows) }}
{%- endmacro %}


{#- Keys of rows that changed in what a model follows, and those of them that the release has. -#}
{% macro find_affected(key, follows, bases, base, removed, affected) -%}
    create or replace table {{ affected }} as
    {% for model in follows -%}
    {% if model in bases -%}
    select {{ key }} from {{ beside("_added", model) }}
    union
    select {{ key }} from {{ beside("_removed", model) }}
    {% else -%}
    select {{ key }} from ({{ differing(key, beside(target.schema, model), beside("_base", model)) }})
    {% endif -%}
    {{ "union" if not loop.last }}
    {% endfor -%};
    create or replace table {{ removed }} as
    select distinct {{ key }} from ({{ base }}) semi join {{ affected }} using ({{ key }})
{%- endmacro %}


{#- SELECT of the keys whose rows differ in two relations that have row_hash. -#}
{% macro differing(key, one, other) -%}
    (select {{ key }}, row_hash from {{ one }} except all select {{ key }}, row_hash from {{ other }})
    union all
    (select {{ key }}, row_hash from {{ other }} except all select {{ key }}, row_hash from {{ one }})
{%- endmacro %}


{#- A view of the affected rows of a followed model, under its own name in a schema of its own. -#}
{% macro restrict(whole, some, key, affected, base) -%}
    create schema if not exists {{ some.without_identifier() }};
    {% if base -%}
    {#- Few or none, mostly: what changed in the followed model itself is among what was added to it. -#}
    {%- set old = some.incorporate(path={"identifier": some.identifier ~ "__old"}) -%}
    create or replace table {{ old }} as
    select {{ key }} from {{ affected }}
    anti join {{ beside("_removed", whole.identifier) }} using ({{ key }})
    anti join {{ beside("_added", whole.identifier) }} using ({{ key }});
    {%- endif %}
    create or replace view {{ some }} as
    {% if base -%}
    select * from ({{ base }}) semi join {{ old }} using ({{ key }})
    union all
    select * from {{ beside("_added", whole.identifier) }} semi join {{ affected }} using ({{ key }})
    {% else -%}
    select * from {{ whole }} semi join {{ affected }} using ({{ key }})
    {%- endif -%}
{%- endmacro %}


{#- Rows that were made anew and are what they were count as taken over: nothing behind them is made anew, or written. -#}
{% macro leave_equal(key, base, added, removed) -%}
    create or replace temp table rows_before as
    select {{ key }}, row_hash from ({{ base }}) semi join {{ removed }} using ({{ key }});
    create or replace temp table keys_equal as
    select {{ key }} from {{ removed }}
    except
    select {{ key }} from (
        {{ differing(key, "rows_before", "(select * from " ~ added ~ " semi join " ~ removed ~ " using (" ~ key ~ "))") }}
    );
    delete from {{ added }} where {{ key }} in (select {{ key }} from keys_equal);
    delete from {{ removed }} where {{ key }} in (select {{ key }} from keys_equal);
    drop table rows_before;
    drop table keys_equal
{%- endmacro %}


{#- The records whose examples are made anew: those that changed, and those that share a conversation, or the source of a -#}
{#- benchmark (answers may stand apart from their questions), with one of them. -#}
{% macro find_touched_records(key, base) -%}
    {{ hold_results("_changed") }};
    set variable lake_scope = '_changed';
    create or replace table _lake.touched as
    with base as (
        select {{ key }}, kind, source, trace_id, record_ids from ({{ base }})
    ),
    changed as materialized (
        select kind, record_id, is_new from _lake.changed
    ),
    holders as materialized (
        select {{ key }}, kind, source, trace_id
        from (select {{ key }}, kind, source, trace_id, unnest(record_ids) as record_id from base)
        semi join (select kind, record_id from changed where not is_new) using (kind, record_id)
    ),
    conversations as (
        select source, trace_id from {{ ref("stg_traces__span_contents") }}
        union
        select source, trace_id from holders where kind = 'traces' and trace_id is not null
    ),
    benchmarks as (
        select source from {{ ref("stg_benchmark__records") }}
        union
        select source from holders where kind = 'benchmark'
    ),
    old as (
        select kind, record_id from changed where not is_new
        union
        select base.kind, unnest(base.record_ids) as record_id
        from base
        semi join conversations on base.source = conversations.source and base.trace_id = conversations.trace_id
        where base.kind = 'traces'
        union
        select base.kind, unnest(base.record_ids) as record_id
        from base
        semi join benchmarks on base.source = benchmarks.source
        where base.kind = 'benchmark'
    )
    select kind, record_id, false as is_new from old
    union all
    select kind, record_id, true as is_new from changed where is_new
{%- endmacro %}


{#- A record that several conversations share brings all their records with it, and these bring theirs. -#}
{% macro close_over_conversations(base) -%}
    {%- set pairs -%}
        select source, trace_id, unnest(record_ids) as record_id
        from ({{ base }})
        where kind = 'traces' and trace_id is not null
    {%- endset -%}
    {%- set touched = "select record_id from _lake.touched where kind = 'traces'" -%}
    {%- set found = namespace(rows=1) -%}
    {%- for _ in range(1000) -%}
        {%- if found.rows -%}
            {%- set lacking -%}
                create or replace temp table lacking as
                with pairs as materialized ({{ pairs }}),
                conversations as (
                    select distinct source, trace_id from pairs where record_id in ({{ touched }} and not is_new)
                )
                select distinct pairs.record_id
                from pairs
                semi join conversations
                    on pairs.source = conversations.source and pairs.trace_id = conversations.trace_id
                where pairs.record_id not in ({{ touched }})
            {%- endset -%}
            {%- do run_query(lacking) -%}
            {%- do run_query("insert into _lake.touched select 'traces', record_id, false from lacking") -%}
            {%- set found.rows = run_query("select count(*) from lacking").rows[0][0] | int -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do run_query("drop table lacking") -%}
    {%- if found.rows -%}
        {{ exceptions.raise_compiler_error(
            "a chain of over 1,000 conversations share records with what changed. Build with --full-refresh."
        ) }}
    {%- endif -%}
{%- endmacro %}


{#- Let staging see the touched records alone, and drop the release's examples that hold one of them. -#}
{% macro restrict_to_touched(key, removed, base) -%}
    {{ hold_results("_touched") }};
    create or replace table {{ removed }} as
    select distinct {{ key }} from (select {{ key }}, kind, unnest(record_ids) as record_id from ({{ base }}))
    semi join (select kind, record_id from _lake.touched where not is_new) using (kind, record_id)
    union
    select {{ key }} from ({{ base }}) semi join _lake.remade using (kind);
    set variable lake_scope = '_touched'
{%- endmacro %}


{#- Hold the kernels' results for the records of a scope: few of all that there are. -#}
{% macro hold_results(scope) -%}
    create or replace table _lake.memo_chat as
    select * from {{ source("memo", "chat") }} where key in (
        select {{ chat_key("records") }} from {{ scope }}.traces as records
        union
        select {{ chat_key("records") }} from {{ scope }}.synthetic as records
    );
    create or replace table _lake.memo_document_text as
    select * from {{ source("memo", "document_text") }} where key in (
        select {{ document_text_key("records") }} from {{ scope }}.web as records
    )
{%- endmacro %}
