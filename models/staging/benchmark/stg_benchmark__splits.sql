-- Splits of the landed suites, and whether a train row may not hold their items. One row per suite and split.
select
    suite,
    split,
    bool_or(is_protected) as is_protected,
    count(*) as items
from {{ ref("stg_benchmark__items") }}
group by suite, split
