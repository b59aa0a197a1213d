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
        -- A record whose result is missing is an error of the build, never a lost row.
        case
            when memos.key is null then error('memo.document_text lacks record ' || records.record_id)
            else memos.text
        end as text
    from records
    left join {{ memo("document_text") }} as memos on {{ document_text_key("records") }} = memos.key

)

select
    {{ example_id("record_id", "0") }} as example_id,
    'web' as kind,
    'document' as shape,
    source,
    format,
    [record_id] as record_ids,
    license,
    observed_at as created_at,
    {{ staged_null("messages") }},
    {{ staged_null("tools") }},
    {{ staged_null("chosen") }},
    {{ staged_null("rejected") }},
    {{ staged_null("label") }},
    {{ staged_null("suite") }},
    {{ staged_null("split") }},
    {{ staged_null("item_key") }},
    {{ staged_null("question") }},
    {{ staged_null("choices") }},
    {{ staged_null("answer") }},
    {{ staged_null("outcome") }},
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
