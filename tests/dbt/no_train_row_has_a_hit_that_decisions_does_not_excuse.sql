-- A kept row's hits on protected splits are of n-grams that many texts hold; its decision names each with its number.
with train as (

    select example_id from {{ ref("train_sft") }}
    union
    select example_id from {{ ref("train_preference") }}
    union
    select example_id from {{ ref("train_unpaired") }}
    union
    select example_id from {{ ref("train_pretrain") }}

)

select
    hits.example_id,
    hits.item_id,
    hits.ngram,
    hits.num_texts,
    decisions.evidence
from {{ ref("contamination_hits") }} as hits
inner join train on hits.example_id = train.example_id
left join {{ ref("decisions") }} as decisions on hits.example_id = decisions.example_id
where
    hits.is_protected
    and not coalesce(
        hits.is_excused and contains(decisions.evidence, format('"{}": {}', hits.ngram, hits.num_texts)), false
    )
