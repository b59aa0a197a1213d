-- Exact duplicates among what no earlier stage dropped: the one with more uses stays, of equals the oldest, of these
-- the one of lesser id, so that what comes later seldom takes an older one's place. The whole example decides; prompt
-- and response are evidence. One row per dropped example.
with survivors as (

    {{ survivors("exact") }}

),

-- Most keys stand once: what has them is not looked at again.
keys as (

    select exact_key
    from {{ ref("example_facts") }}
    where exact_key is not null
    group by exact_key
    having count(*) > 1

),

keyed as (

    select
        facts.example_id,
        facts.created_at,
        len(facts.uses) as num_uses,
        facts.exact_key,
        facts.prompt_key,
        facts.response_key
    from {{ ref("example_facts") }} as facts
    inner join keys on facts.exact_key = keys.exact_key
    inner join survivors on facts.example_id = survivors.example_id

),

compared as (

    select
        example_id as dropped_id,
        first_value(example_id) over same as kept_id,
        prompt_key = first_value(prompt_key) over same as is_prompt_equal,
        response_key = first_value(response_key) over same as is_response_equal
    from keyed
    window same as (partition by exact_key order by num_uses desc, created_at nulls last, example_id)

),

final as (

    select
        {{ h(["'exact'", "dropped_id"]) }} as edge_id,
        kept_id,
        dropped_id,
        'exact' as rule,
        is_prompt_equal,
        is_response_equal
    from compared
    where kept_id != dropped_id

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
