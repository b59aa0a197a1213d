-- Decisions that let an example stand for another and drop it, too.
select
    dropped.example_id,
    dropped.kept_id,
    standing.stage
from {{ ref("decisions") }} as dropped
left join {{ ref("decisions") }} as standing on dropped.kept_id = standing.example_id
where dropped.kept_id is not null and standing.kept is not true
