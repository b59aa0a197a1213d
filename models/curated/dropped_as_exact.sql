-- One row per dropped example.
with final as (

    select
        dropped_id as example_id,
        'exact_duplicate' as reason,
        kept_id,
        'equal after NFC and folding white space' as evidence
    from {{ ref("dup_edges") }}
    where rule = 'exact'

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
