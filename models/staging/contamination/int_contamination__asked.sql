-- What the kernel contamination is asked for: each text with the suites that it has not been searched for, and, so that
-- they count as asked, the texts that lack none. One row per example and field.
with fields as (

    select * from {{ ref("int_contamination__fields") }}

),

texts as (

    select * from {{ ref("int_contamination__texts") }} where memo_key is not null

)

select
    texts.memo_key as key,
    fields.text_hash,
    case when texts.missing = [] then '' else fields.text end as text,
    texts.missing as suites,
    fields.example_id
from fields
inner join texts on fields.text_hash = texts.text_hash
