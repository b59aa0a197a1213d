select
    name,
    value
from {{ ref("thresholds") }}
where name = 'contamination_listed_items' and value > {{ kernel_parameter("contamination", "max_items") }}
