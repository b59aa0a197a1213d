-- The suites that each text of this build was searched for.
with final as (

    select
        suite,
        benchmark,
        split,
        is_protected,
        count(distinct item_id) as items
    from {{ ref("int_contamination__items") }}
    group by all

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
