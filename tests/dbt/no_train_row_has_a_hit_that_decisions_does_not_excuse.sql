-- A kept row's hits on protected splits are of n-grams that many texts hold; its decision names each with its number.
with train as (

    {% for table in train_tables() %}
    select example_id from {{ ref(table) }}
    {{ "union" if not loop.last }}
    {% endfor %}

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
    -- Excuses are compared with what stands between them, so that the number 1 is not found in 12.
    and not coalesce(
        hits.is_excused
        and contains('; ' || decisions.evidence || '; ', '; ' || {{ excuse("hits") }} || '; '),
        false
    )
