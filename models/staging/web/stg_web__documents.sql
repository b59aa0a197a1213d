-- Web records as text. One row per record.
with records as (

    select * from {{ ref("stg_web__records") }}

),

texts as (

    select
        records.*,
        memos.encoding,
        memos.repair,
        memos.extractor,
        memos.problem,
        {{ memo_result("document_text", "text") }} as text
    from records
    left join {{ scoped_memo("document_text") }} as memos on {{ document_text_key("records") }} = memos.key

)

select
    {{ example_id("record_id", "0") }} as example_id,
    'web' as kind,
    'document' as shape,
    source,
    format,
    [record_id] as record_ids,
    {{ staged_nulls("trace_id") }},
    license,
    observed_at as created_at,
    {{ staged_nulls("chat", "item", "outcome") }},
    {{ provenance(none, "options") }} as provenance,
    struct_pack(
        url := natural_key,
        content_type := content_type,
        encoding := encoding,
        repair := repair,
        extractor := extractor
    ) as document,
    text,
    problem
from texts
