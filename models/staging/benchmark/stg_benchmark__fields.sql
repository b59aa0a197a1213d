-- Benchmark records with the fields of their item as the registry, or else the usual names, say. One row per record.
with bodies as (

    select
        *,
        case when json_type(body) = 'OBJECT' then json_keys(body) else [] end as names
    from {{ ref("stg_benchmark__bodies") }}

),

field_values as (

    select
        *,
        {{ item_values("body", "names", entry_fields("question")) }} as question_values,
        {{ item_values("body", "names", entry_fields("answer")) }} as answer_values,
        {{ item_values("body", "names", entry_fields("item_key")) }} as key_values,
        {{ item_values("body", "names", entry_fields("choices")) }} as choices_values,
        {{ item_values("body", "names", "string_split(coalesce(entry.split_field, ''), ' ')") }} as split_values,
        case when entry is null then {{ item_values("body", "names", usual_fields("context")) }} end as context_values
    from bodies

),

texts as (

    select
        *,
        {{ item_texts("question_values") }} as questions,
        {{ item_texts("answer_values") }} as answers,
        {{ item_texts("context_values[:1]") }} as contexts,
        list_filter(
            list_transform(choices_values, lambda v: {{ item_choices("v") }}), lambda c: c is not null
        )[1] as choices
    from field_values

)

select
    record_id,
    source,
    format,
    license,
    observed_at,
    options,
    is_answer,
    stem,
    entry,
    coalesce(options ->> 'suite', entry.suite, source) as suite,
    coalesce(options ->> 'split', entry.split, split_values[1] ->> '$') as given_split,
    coalesce(file_key, key_values[1] ->> '$') as item_key,
    case
        when is_answer then null
        -- An entry names all fields that make up the question; without one the first usual name counts.
        when entry is not null then array_to_string(questions, e'\n\n')
        when questions[1] is not null then concat_ws(e'\n\n', contexts[1], questions[1])
    end as question,
    case when entry is null or entry.choices is not null then choices end as choices,
    case when json_type(body) = 'OBJECT' then answers[1] else {{ item_text("body") }} end as answer
from texts
