{#- A table of schema raw or memo; while `examples` is extended, those of its rows that its new rows are made of: the session's -#}
{#- variable lake_scope names a schema with views of the same names (lake/releases/base.py). All others read all of it. -#}
{% macro scoped(relation) -%}
    query_table(
        '"{{ relation.database }}"."' || coalesce(getvariable('lake_scope'), '{{ relation.schema }}')
        || '"."{{ relation.identifier }}"'
    )
{%- endmacro %}


{#- Body of stg_<kind>__records: the landed records with the landing facts that count now. -#}
{% macro landed_records(kind) -%}
with records as (

    select * from {{ scoped(source("raw", kind)) }}

),

amendments as (

    select
        record_id,
        arg_max(
            struct_pack(license := license, options := options),
            struct_pack(amended_at := amended_at, batch_id := batch_id)
        ) as fact
    from {{ source("raw", "amendments") }}
    where kind = '{{ kind }}'
    group by record_id

)

select
    records.record_id,
    records.source,
    records.format,
    records.path,
    records.natural_key,
    records.content_type,
    records.observed_at,
    records.payload,
    records.payload_hash,
    case when amendments.record_id is null then records.license else amendments.fact.license end as license,
    cast(case when amendments.record_id is null then records.options else amendments.fact.options end as json) as options
from records
left join amendments on records.record_id = amendments.record_id
{%- endmacro %}


{#- SELECT of all records that landed. One row per record. -#}
{% macro landed_ids() -%}
    {%- for kind in ["traces", "web", "synthetic", "benchmark"] %}
    select
        '{{ kind }}' as kind,
        source,
        record_id
    from {{ source("raw", kind) }}
    {{ "union all" if not loop.last }}
    {%- endfor %}
{%- endmacro %}


{#- The licences of an SPDX expression that all hold, lower case: `MIT AND CC-BY-4.0`, as records under several give. -#}
{% macro licence_terms(license) -%}
    string_split(lower({{ license }}), ' and ')
{%- endmacro %}


{#- Key of the kernel `chat` for a relation of records. -#}
{% macro chat_key(records) -%}
    {{ memo_key("chat", [records ~ ".format", records ~ ".payload_hash"]) }}
{%- endmacro %}


{#- Key of the kernel `document_text` for a relation of records. -#}
{% macro document_text_key(records) -%}
    {{ memo_key("document_text", ["coalesce(" ~ records ~ ".content_type, '')", records ~ ".payload_hash"]) }}
{%- endmacro %}


{#- SELECT of a stg_<kind>__records with the units of each record: record columns, n (from 0), unit. One row per unit. -#}
{% macro chat_units(records) -%}
    select
        records.record_id,
        records.source,
        records.format,
        records.natural_key,
        records.observed_at,
        records.license,
        records.options,
        unnest(range(len(units))) as n,
        unnest(units) as unit
    from (
        select
            records.*,
            {{ memo_result("chat", "units") }} as units
        from {{ ref(records) }} as records
        left join {{ scoped_memo("chat") }} as memos on {{ chat_key("records") }} = memos.key
    ) as records
{%- endmacro %}


{#- Columns of an example that is a unit of the kernel `chat`, for a relation that `chat_units` gives. -#}
{% macro unit_columns(kind) -%}
    {{ example_id("record_id", "n") }} as example_id,
    '{{ kind }}' as kind,
    {{ unit_shape("unit") }} as shape,
    source,
    format,
    [record_id] as record_ids,
    {{ staged_nulls("trace_id") }},
    license,
    coalesce(unit.created_at, observed_at) as created_at,
    unit.messages as messages,
    unit.tools as tools,
    unit.chosen as chosen,
    unit.rejected as rejected,
    unit.label as label,
    {{ staged_nulls("item", "document", "text") }},
    unit.outcome as outcome,
    {{ provenance("unit.provenance", "options") }} as provenance,
    unit.problem as problem
{%- endmacro %}


{#- Provenance of an example: what the row says itself (none: nothing), else the options of its landing; null where nothing is known. -#}
{% macro provenance(given, options) -%}
    {%- set types = {"seed": "bigint", "temperature": "double", "top_p": "double", "parent_ids": "varchar []"} -%}
    {%- set fields = [
        "generator_model", "generator_version", "prompt_id", "prompt_hash", "seed", "temperature", "top_p", "parent_ids",
        "verifier", "verifier_verdict"
    ] -%}
    nullif(
        struct_pack(
            {%- for field in fields %}
            {%- set arrow = "->" if field == "parent_ids" else "->>" %}
            {%- set option = "cast(" ~ options ~ " " ~ arrow ~ " '" ~ field ~ "' as " ~ types.get(field, "varchar") ~ ")" %}
            {{ field }} := {{ "coalesce(" ~ given ~ "." ~ field ~ ", " ~ option ~ ")" if given else option }}
            {{- "," if not loop.last }}
            {%- endfor %}
        ),
        struct_pack(
            {%- for field in fields %}
            {{ field }} := cast(null as {{ types.get(field, "varchar") }})
            {{- "," if not loop.last }}
            {%- endfor %}
        )
    )
{%- endmacro %}
