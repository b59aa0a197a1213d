-- What the kernel document_text is asked for. One row per web record.
with records as (

    select * from {{ ref("stg_web__records") }}

)

select
    {{ document_text_key("records") }} as key,
    records.payload,
    records.content_type,
    records.record_id
from records
