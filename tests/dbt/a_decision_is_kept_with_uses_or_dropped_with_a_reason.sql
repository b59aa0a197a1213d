select example_id
from {{ ref("decisions") }}
where
    (kept and (uses is null or len(uses) = 0 or coalesce(stage, reason, kept_id) is not null))
    or (not kept and (uses is not null or stage is null or reason is null))
