-- What the kernel contamination is asked for: each text with the suites that it has not been searched for, and one of
-- the examples that hold it. One row per text and 120 suites.
with texts as (

    select * from {{ ref("int_contamination__texts") }}

),

-- Texts of what this build made are at hand; only the others are looked for in the release.
new_holders as (

    select
        text_hash,
        example_id,
        field
    from ({{ searched_fields("_added.example_facts") }}) as fields
    where text_hash in (select text_hash from texts)
    qualify row_number() over (partition by text_hash order by example_id, field) = 1

),

old_holders as (

    select
        text_hash,
        example_id,
        field
    from {{ ref("int_contamination__fields") }}
    where text_hash in (select text_hash from texts where text_hash not in (select text_hash from new_holders))
    qualify row_number() over (partition by text_hash order by example_id, field) = 1

),

held as (

    select
        holders.text_hash,
        holders.example_id,
        {{ searched_text("holders.field", "examples") }} as text
    from new_holders as holders
    inner join _added.examples as examples on holders.example_id = examples.example_id

    union all

    select
        holders.text_hash,
        holders.example_id,
        {{ searched_text("holders.field", "examples") }} as text
    from old_holders as holders
    inner join {{ ref("examples") }} as examples on holders.example_id = examples.example_id

)

select
    texts.memo_key as key,
    texts.text_hash,
    held.text,
    texts.missing as suites,
    held.example_id
from texts
inner join held on texts.text_hash = held.text_hash
