{#- H, the one hash that Python (lake/identity.py) and SQL share: SHA-256 over the fields, each after its byte length. -#}
{#- fields: SQL expressions of type VARCHAR, not null (H of a null is null); a text in quotes is an expression too. -#}
{% macro h(fields) -%}
    left(sha256(
        {%- for field in fields %}
        {{ '|| ' if not loop.first }}strlen({{ field }}) || ':' || {{ field }}
        {%- endfor %}
    ), 32)
{%- endmacro %}


{#- H of all rows of a group, an aggregate: each row gives one field, an expression as those of `h`. -#}
{#- order_by: expressions that no two rows of a group have alike; the order of the fields. -#}
{% macro h_of_rows(field, order_by) -%}
    left(sha256(coalesce(string_agg(strlen({{ field }}) || ':' || {{ field }}, '' order by {{ order_by }}), '')), 32)
{%- endmacro %}


{#- H of a row's JSON, columns in the contract's order: `select *, row_hash('final') as row_hash from final`. -#}
{% macro row_hash(relation) -%}
    {{ h(["cast(to_json(" ~ relation ~ ") as varchar)"]) }}
{%- endmacro %}


{#- Example n (from 0) of a record. -#}
{% macro example_id(record_id, n) -%}
    {{ h(["'example'", record_id, "cast(" ~ n ~ " as varchar)"]) }}
{%- endmacro %}


{#- Example made of grouped spans: stays the same while the trace grows. -#}
{% macro trace_example_id(kind, source, trace_id) -%}
    {{ h(["'example'", kind, source, trace_id]) }}
{%- endmacro %}


{#- Key of a kernel's memo: H of the kernel's name and what it computes from. -#}
{% macro memo_key(kernel, fields) -%}
    {{ h(["'" ~ kernel ~ "'"] + fields) }}
{%- endmacro %}


{#- The view of a kernel's results so far; the model that fills it becomes a parent. -#}
{% macro memo(kernel) -%}
    {%- set filled_by = ref("memo_" ~ kernel) -%}
    {{ source("memo", kernel) }}
{%- endmacro %}


{#- The same, restricted with the records whose results these are. -#}
{% macro scoped_memo(kernel) -%}
    {%- set filled_by = ref("memo_" ~ kernel) -%}
    {{ scoped(source("memo", kernel)) }}
{%- endmacro %}


{#- A column of a memo that is left-joined as `memos` to `records`; a missing result is an error, never a lost row. -#}
{% macro memo_result(kernel, column) -%}
    case
        when memos.key is null then error('memo.{{ kernel }} lacks record ' || records.record_id)
        else memos.{{ column }}
    end
{%- endmacro %}
