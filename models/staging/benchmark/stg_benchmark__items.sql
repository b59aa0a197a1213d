-- Nothing yet. One row per benchmark item.
with records as (

    select * from {{ ref("stg_benchmark__records") }}

),

nothing as (

    select * from records where false

)

select
    {{ example_id("record_id", "0") }} as example_id,
    'benchmark' as kind,
    'item' as shape,
    source,
    format,
    [record_id] as record_ids,
    license,
    {% for column in [
        "created_at", "messages", "tools", "chosen", "rejected", "label", "suite", "split", "item_key", "question", "choices",
        "answer", "outcome", "provenance", "document", "text", "problem"
    ] -%}
    {{ staged_null(column) }}{{ "," if not loop.last }}
    {% endfor %}
from nothing
