{{ config(materialized="extended", key="example_id", follows=["examples"]) }}
-- Tables of train/ and eval/ that an example is fit for, and all else that stages ask of it.
with examples as (

    select
        *,
        -- What models are judged on is neither searched for itself, nor compared, nor trained on.
        kind != 'benchmark' as is_trainable,
        {{ spoken_by("chosen", "assistant") }} as chosen_text,
        {{ spoken_by("rejected", "assistant") }} as rejected_text,
        {{ has_trainable_turn("messages") }} as has_answer,
        {{ answers_a_user("messages") }} as answers_user
    from {{ ref("examples") }}

),

fit as (

    select
        *,
        list_filter([
            case when not is_trainable and shape = 'item' then 'eval_items' end,
            case
                when
                    is_trainable
                    and shape = 'pair'
                    and {{ first_user_turn("messages") }} is not null
                    and {{ has_trainable_turn("chosen") }}
                    and {{ has_trainable_turn("rejected") }}
                    and chosen != rejected
                    then 'train_preference'
            end,
            case when is_trainable and shape = 'document' then 'train_pretrain' end,
            -- Runs that were rewarded, and chats that nobody judged.
            case
                when is_trainable and shape = 'chat' and answers_user and coalesce(outcome.reward, 1) = 1
                    then 'train_sft'
            end,
            -- Labelled chats, and every run that was judged: its label is whether the reward is 1.
            case
                when
                    is_trainable
                    and answers_user
                    and ((shape = 'unpaired' and label is not null) or (shape = 'chat' and outcome.reward is not null))
                    then 'train_unpaired'
            end
        ], lambda use: use is not null) as uses
    from examples

),

final as (

    select
        example_id,
        kind,
        shape,
        source,
        license,
        created_at,
        problem,
        {{ is_blank("text") }} and not has_answer as is_empty,
        uses,
        case
            when uses != [] then null
            when shape = 'pair' and chosen = rejected then 'equal_pair'
            when shape = 'pair' then 'incomplete_pair'
            when not has_answer then 'no_assistant_turn'
            when not answers_user then 'no_user_turn'
            when shape = 'unpaired' then 'no_label'
            else 'no_use'
        end as unused_reason,
        case when is_trainable and shape = 'document' and text != '' then text_hash end as document_hash,
        case when is_trainable and shape != 'document' then prompt_hash end as prompt_hash,
        case when is_trainable and shape not in ('document', 'pair') then response_hash end as response_hash,
        case when is_trainable and shape = 'pair' then {{ h(["chosen_text"]) }} end as chosen_hash,
        case when is_trainable and shape = 'pair' then {{ h(["rejected_text"]) }} end as rejected_hash,
        case when is_trainable then {{ exact_key("fit") }} end as exact_key,
        case when is_trainable then {{ h([folded("prompt")]) }} end as prompt_key,
        case when is_trainable then {{ h([folded("response")]) }} end as response_key
    from fit

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
