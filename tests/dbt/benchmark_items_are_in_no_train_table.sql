select
    example_id,
    uses
from {{ ref("decisions") }}
where kind = 'benchmark' and len(list_filter(uses, lambda u: u != 'eval_items')) > 0
