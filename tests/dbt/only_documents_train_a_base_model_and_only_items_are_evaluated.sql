select
    decisions.example_id,
    decisions.shape,
    decisions.uses
from {{ ref("decisions") }} as decisions
where
    list_contains(decisions.uses, 'train_pretrain') != (decisions.shape = 'document')
    or list_contains(decisions.uses, 'eval_items') != (decisions.shape = 'item')
