-- Items of benchmarks; an answer that stands in a file of its own joins its item by key. Every record is in one: an
-- answer that no item takes stands alone, without a question. One row per item.
with fields as materialized (

    select * from {{ ref("stg_benchmark__fields") }}

),

answers as (

    select
        source,
        item_key,
        max(record_id) as record_id,
        arg_max(answer, record_id) as answer,
        arg_max(regexp_extract(stem, '(^|[^a-z])(test|validation|dev|train)([^a-z]|$)', 2), record_id) as split
    from fields
    where is_answer
    group by source, item_key

),

items as materialized (

    select
        fields.* replace (
            coalesce(fields.answer, answers.answer) as answer,
            coalesce(fields.given_split, nullif(answers.split, ''), fields.stem) as given_split
        ),
        -- Only the first item of a key takes the answer's record with it; the text goes to all.
        case
            when
                answers.record_id is not null
                and row_number() over (partition by fields.source, fields.item_key order by fields.record_id) = 1
                then list_sort([fields.record_id, answers.record_id])
            else [fields.record_id]
        end as record_ids
    from fields
    left join answers on fields.source = answers.source and fields.item_key = answers.item_key
    where not fields.is_answer

),

taken as (

    select unnest(record_ids) as record_id from items

),

alone as (

    select
        fields.* replace (coalesce(fields.given_split, fields.stem) as given_split),
        [fields.record_id] as record_ids
    from fields
    left join taken on fields.record_id = taken.record_id
    where fields.is_answer and taken.record_id is null

),

together as (

    select * from items
    union all
    select * from alone

)

select
    {{ example_id("record_id", "0") }} as example_id,
    'benchmark' as kind,
    'item' as shape,
    source,
    format,
    record_ids,
    {{ staged_nulls("trace_id") }},
    license,
    observed_at as created_at,
    {{ staged_nulls("chat", "outcome", "document", "text") }},
    suite,
    given_split as split,
    item_key,
    question,
    choices,
    answer,
    {{ provenance(none, "options") }} as provenance,
    case when question is null or question = '' then 'unreadable_shape' end as problem,
    -- A split that the registry does not name as open is protected, known suite or not.
    not coalesce(list_contains(string_split(entry.unprotected_splits, ' '), given_split), false) as is_protected
from together
