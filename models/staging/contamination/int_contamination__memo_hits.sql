-- What memo.contamination holds for the texts and suites of this build. One row per text and suite with a hit.
with suites as (

    select
        suite,
        benchmark,
        split,
        is_protected
    from {{ ref("contamination_suites") }}

),

results as materialized (

    select
        text_hash,
        found
    from {{ memo("contamination") }}
    where found != []

),

-- Few texts have hits: these are looked for among all fields, and not the other way round.
texts as (

    select distinct text_hash
    from {{ ref("int_contamination__fields") }}
    where text_hash in (select text_hash from results)

),

hits as (

    select
        results.text_hash,
        unnest(results.found) as suite_hits
    from results
    inner join texts on results.text_hash = texts.text_hash
    -- A text that was not searched for a suite is an error of the build, never a text without hits.
    where
        case
            when (select count(*) from {{ ref("int_contamination__texts") }}) > 0
                then error('memo.contamination lacks texts')
            else true
        end

)

-- Two builds at one time may have computed a result twice.
select distinct
    hits.text_hash,
    suites.suite,
    suites.benchmark,
    suites.split,
    suites.is_protected,
    hits.suite_hits.num_items,
    hits.suite_hits.ngrams,
    hits.suite_hits.hits
from hits
inner join suites on hits.suite_hits.suite = suites.suite
