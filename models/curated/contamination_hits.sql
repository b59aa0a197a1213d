-- Benchmark items that stand in examples, and whether that says anything: n-grams that many texts of the lake hold are
-- common property, a whole item is not. At most contamination_listed_items (contracts/reference/thresholds.csv) per
-- example and benchmark.
-- One row per example, field, item and part.
with fields as (

    select
        example_id,
        field,
        text_hash
    from {{ ref("int_contamination__fields") }}

),

hits as (

    select * from {{ ref("int_contamination__text_hits") }}

),

example_hits as (

    select
        fields.example_id,
        fields.field,
        hits.*,
        hits.hit."match" = 'ngrams'
        and hits.share < {{ threshold("contamination_excused_share") }}
        and hits.num_texts > {{ threshold("contamination_common_texts") }} as is_excused
    from fields
    inner join hits on fields.text_hash = hits.text_hash

),

items as (

    select
        *,
        bool_or(is_protected and not is_excused) over item as is_reason,
        max(share) over item as item_share
    from example_hits
    window item as (partition by example_id, benchmark, hit.item_id)

),

listed as (

    -- What drops the example comes first, so that other items never push it off the list.
    select *
    from items
    qualify
        dense_rank() over (
            partition by example_id, benchmark order by is_reason desc, item_share desc, hit.item_id
        ) <= {{ threshold("contamination_listed_items") }}

),

final as (

    select
        {{ h(["example_id", "field", "hit.item_id", "hit.part"]) }} as hit_id,
        example_id,
        field,
        hit.item_id,
        hit.part,
        benchmark,
        split,
        is_protected,
        hit."match" as matched_by,
        share,
        hit.matched_ngrams,
        hit.num_ngrams,
        hit.longest_run,
        hit.first_word,
        num_items,
        ngram,
        num_texts,
        is_excused
    from listed

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
