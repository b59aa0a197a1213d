-- What memo.contamination holds for the texts and suites of this build. One row per text and suite with a hit.
with texts as (

    select * from {{ ref("int_contamination__texts") }}

),

suites as (

    select distinct suite, benchmark, split, is_protected from {{ ref("int_contamination__items") }}

),

results as (

    select
        results.text_hash,
        unnest(results.found) as suite_hits
    from {{ memo("contamination") }} as results
    inner join texts on results.text_hash = texts.text_hash
    where
        -- A text that was not searched for a suite is an error of the build, never a text without hits.
        case
            when (select count(*) from texts as asked where asked.missing != []) > 0
                then error('memo.contamination lacks texts')
            else results.found != []
        end

)

-- Two builds at one time may have computed a result twice.
select distinct
    results.text_hash,
    suites.suite,
    suites.benchmark,
    suites.split,
    suites.is_protected,
    results.suite_hits.num_items,
    results.suite_hits.ngrams,
    results.suite_hits.hits
from results
inner join suites on results.suite_hits.suite = suites.suite
