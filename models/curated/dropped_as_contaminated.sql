-- A hit on a split that is not protected, or of n-grams that many texts hold, is evidence and no reason. One row per
-- dropped example.
with survivors as (

    {{ survivors("contamination") }}

),

hits as (

    select hits.*
    from {{ ref("contamination_hits") }} as hits
    inner join survivors on hits.example_id = survivors.example_id
    where hits.is_protected and not hits.is_excused

),

worst as (

    select
        example_id,
        count(distinct item_id) as num_items,
        arg_max(hits, (share, matched_ngrams, hit_id)) as hit
    from hits
    group by example_id

),

final as (

    select
        example_id,
        'contaminated' as reason,
        cast(null as varchar) as kept_id,
        format(
            '{} {} item {}: {} of {} n-grams of its {} in {}; texts of the lake that hold "{}": {}; items found: {}',
            hit.benchmark, hit.split, hit.item_id, hit.matched_ngrams, hit.num_ngrams, hit.part, hit.field,
            hit.ngram, hit.num_texts, num_items
        ) as evidence
    from worst

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
