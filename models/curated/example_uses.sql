{{ config(materialized="view") }}
-- What each table of train/ and eval/ asks of an example. An example that none takes is dropped by dropped_by_outcome.
with examples as (

    select * from {{ ref("examples") }}

),

-- What models are judged on trains none.
trainable as (

    select * from examples where kind != 'benchmark'

),

uses as (

    -- Runs that were rewarded, and chats that nobody judged.
    select example_id, 'train_sft' as use
    from trainable
    where
        shape = 'chat'
        and {{ answers_a_user("messages") }}
        and coalesce(outcome.reward, 1) = 1

    union all

    -- Labelled chats, and every run that was judged: its label is whether the reward is 1.
    select example_id, 'train_unpaired' as use
    from trainable
    where
        {{ answers_a_user("messages") }}
        and ((shape = 'unpaired' and label is not null) or (shape = 'chat' and outcome.reward is not null))

    union all

    select example_id, 'train_preference' as use
    from trainable
    where
        shape = 'pair'
        and {{ first_user_turn("messages") }} is not null
        and {{ has_trainable_turn("chosen") }}
        and {{ has_trainable_turn("rejected") }}
        and chosen != rejected

    union all

    select example_id, 'train_pretrain' as use
    from trainable
    where shape = 'document'

    union all

    select example_id, 'eval_items' as use
    from examples
    where kind = 'benchmark' and shape = 'item'

)

select
    example_id,
    use
from uses
