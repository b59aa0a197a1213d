-- What examples are searched for: each split of a benchmark is a suite of its own, named by the hash of its items, so
-- that its results hold until an item changes. One row per item and part.
with items as (

    select
        example_id as item_id,
        suite as benchmark,
        coalesce(split, '') as split,
        is_protected,
        text as question,
        coalesce(answer, '') as answer
    from {{ ref("examples") }}
    where kind = 'benchmark' and problem is null

),

suites as (

    select
        benchmark,
        split,
        is_protected,
        {{ h_of_rows(h(["item_id", "question", "answer"]), "item_id") }} as suite
    from items
    group by all

),

parts as (

    select item_id, benchmark, split, is_protected, 'question' as part, question as text from items
    union all
    select item_id, benchmark, split, is_protected, 'answer' as part, answer as text from items where answer != ''

)

select
    suites.suite,
    parts.benchmark,
    parts.split,
    parts.is_protected,
    parts.item_id,
    parts.part,
    parts.text
from parts
inner join suites
    on
        parts.benchmark = suites.benchmark
        and parts.split = suites.split
        and parts.is_protected = suites.is_protected
