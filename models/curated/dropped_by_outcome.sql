-- Examples that no table of train/ and eval/ takes, by the first thing that is missing.
with examples as (

    select * from {{ ref("examples") }}

),

survivors as (

    {{ survivors("outcome") }}

),

useless as (

    select example_id from survivors
    except
    select example_id from {{ ref("example_uses") }}

),

final as (

    select
        examples.example_id,
        case
            when examples.shape = 'pair' and examples.chosen = examples.rejected then 'equal_pair'
            when examples.shape = 'pair' then 'incomplete_pair'
            when not {{ has_trainable_turn("examples.messages") }} then 'no_assistant_turn'
            when not {{ answers_a_user("examples.messages") }} then 'no_user_turn'
            when examples.shape = 'unpaired' then 'no_label'
            else 'no_use'
        end as reason,
        cast(null as varchar) as kept_id,
        cast(null as varchar) as evidence
    from useless
    inner join examples on useless.example_id = examples.example_id

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
