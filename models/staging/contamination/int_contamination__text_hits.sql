-- Hits with the one of their n-grams that the fewest texts of the lake hold; where more items hit than are listed, that
-- of all of them, so that no item is excused unseen. One row per text, suite, item and part.
with memo_hits as (

    select
        *,
        num_items > {{ threshold("contamination_listed_items") }} as is_cut
    from {{ ref("int_contamination__memo_hits") }}

),

holders as (

    select
        text_hash,
        unnest(ngrams) as ngram
    from memo_hits

),

frequencies as (

    select
        ngram,
        count(distinct text_hash) as num_texts
    from holders
    group by ngram

),

hits as (

    select
        * exclude (hits),
        unnest(hits) as hit
    from memo_hits

),

items as (

    select
        *,
        hit.matched_ngrams / hit.num_ngrams as share,
        max(hit.matched_ngrams / hit.num_ngrams) over (partition by text_hash, suite, hit.item_id) as item_share
    from hits

),

listed as (

    -- The memo's own order, cut before its end: the memo keeps more items than are listed.
    select *
    from items
    qualify
        dense_rank() over (partition by text_hash, suite order by item_share desc, hit.item_id)
        <= {{ threshold("contamination_listed_items") }}

),

hit_ngrams as (

    select
        text_hash,
        suite,
        hit.item_id,
        hit.part,
        unnest(case when is_cut then ngrams else list_transform(hit.ngrams, lambda place: ngrams[place]) end) as ngram
    from listed

),

rarest as (

    select
        hit_ngrams.text_hash,
        hit_ngrams.suite,
        hit_ngrams.item_id,
        hit_ngrams.part,
        arg_min(hit_ngrams.ngram, (frequencies.num_texts, hit_ngrams.ngram)) as ngram,
        min(frequencies.num_texts) as num_texts
    from hit_ngrams
    inner join frequencies on hit_ngrams.ngram = frequencies.ngram
    group by all

)

select
    listed.text_hash,
    listed.benchmark,
    listed.split,
    listed.is_protected,
    listed.num_items,
    listed.hit,
    listed.share,
    rarest.ngram,
    rarest.num_texts
from listed
inner join rarest
    on
        listed.text_hash = rarest.text_hash
        and listed.suite = rarest.suite
        and listed.hit.item_id = rarest.item_id
        and listed.hit.part = rarest.part
