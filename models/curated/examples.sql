{{ config(materialized="extended", key="example_id", follows="records") }}
-- depends_on: {{ ref("stg_traces__span_contents") }}, {{ ref("stg_benchmark__records") }}
{% set staging = [
    "stg_traces__chats", "stg_traces__spans", "stg_synthetic__rows", "stg_web__documents", "stg_benchmark__items"
] -%}

with staged as (

    {% for model in staging %}
    select {{ staged_columns() }} from {{ ref(model) }}
    {{ "union all" if not loop.last }}
    {% endfor %}

),

turns as (

    select
        *,
        -- A pair's prompt and continuations, and a chat's turns, in one list.
        list_concat(coalesce(messages, []), list_concat(coalesce(chosen, []), coalesce(rejected, []))) as turns
    from staged

),

spoken as (

    select
        *,
        {{ spoken_by("turns", "user") }} as prompt,
        {{ spoken_by("turns", "assistant") }} as response
    from turns

),

texts as (

    select
        * exclude (text),
        coalesce(case shape
            when 'document' then text
            when 'item' then concat_ws(e'\n', question, array_to_string(choices, e'\n'))
            else concat_ws(e'\n\n', prompt, response)
        end, '') as text
    from spoken

),

final as (

    select
        example_id,
        kind,
        shape,
        source,
        format,
        record_ids,
        trace_id,
        license,
        created_at,
        messages,
        tools,
        chosen,
        rejected,
        label,
        suite,
        split,
        is_protected,
        item_key,
        question,
        choices,
        answer,
        outcome,
        provenance,
        document,
        text,
        prompt,
        response,
        {{ h(["text"]) }} as text_hash,
        {{ h(["prompt"]) }} as prompt_hash,
        {{ h(["response"]) }} as response_hash,
        problem
    from texts

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
