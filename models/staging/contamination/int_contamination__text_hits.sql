-- Hits with the one of their n-grams that the fewest texts of the lake hold; where more items hit than are listed, that
-- of all of them, so that no item is excused unseen. One row per text, suite, item and part.
with found as (

    select * from {{ ref("int_contamination__found") }}

),

holders as (

    select
        text_hash,
        unnest(ngrams) as ngram
    from found

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
    from found

),

hit_ngrams as (

    select
        text_hash,
        suite,
        hit.item_id,
        hit.part,
        unnest(
            case when num_items > 32 then ngrams else list_transform(hit.ngrams, lambda place: ngrams[place]) end
        ) as ngram
    from hits

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
    hits.text_hash,
    hits.benchmark,
    hits.split,
    hits.is_protected,
    hits.num_items,
    hits.hit,
    hits.hit.matched_ngrams / hits.hit.num_ngrams as share,
    rarest.ngram,
    rarest.num_texts
from hits
inner join rarest
    on
        hits.text_hash = rarest.text_hash
        and hits.suite = rarest.suite
        and hits.hit.item_id = rarest.item_id
        and hits.hit.part = rarest.part
