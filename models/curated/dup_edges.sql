-- Exact duplicates among what no earlier stage dropped: the one with more uses stays, of equals the one of lesser id.
-- The whole example decides; prompt and response are evidence. One row per dropped example.
with survivors as (

    {{ survivors("exact") }}

),

uses as (

    select
        example_id,
        count(*) as num_uses
    from {{ ref("example_uses") }}
    group by example_id

),

keyed as (

    select
        examples.example_id,
        coalesce(uses.num_uses, 0) as num_uses,
        {{ exact_key("examples") }} as exact_key,
        {{ h([folded("examples.prompt")]) }} as prompt_key,
        {{ h([folded("examples.response")]) }} as response_key
    from {{ ref("examples") }} as examples
    inner join survivors on examples.example_id = survivors.example_id
    left join uses on examples.example_id = uses.example_id
    where examples.kind != 'benchmark'

),

compared as (

    select
        example_id as dropped_id,
        first_value(example_id) over same as kept_id,
        prompt_key = first_value(prompt_key) over same as is_prompt_equal,
        response_key = first_value(response_key) over same as is_response_equal
    from keyed
    window same as (partition by exact_key order by num_uses desc, example_id)

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
