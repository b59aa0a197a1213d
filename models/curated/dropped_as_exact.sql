-- Nothing yet. One row per dropped example.
with final as (

    select
        example_id,
        cast(null as varchar) as reason,
        cast(null as varchar) as kept_id,
        cast(null as varchar) as evidence
    from {{ ref("example_uses") }}
    where false

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
