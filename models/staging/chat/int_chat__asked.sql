-- What the kernel chat is asked for. One row per record of traces and synthetic.
with records as (

    select record_id, format, payload, payload_hash from {{ ref("stg_traces__records") }}
    union all
    select record_id, format, payload, payload_hash from {{ ref("stg_synthetic__records") }}

)

select
    {{ chat_key("records") }} as key,
    records.payload,
    records.format,
    records.record_id
from records
