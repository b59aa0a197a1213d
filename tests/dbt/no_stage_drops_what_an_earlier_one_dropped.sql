with dropped as (

    {{ dropped_by_stages() }}

)

select
    example_id,
    list(stage order by stage) as stages
from dropped
group by example_id
having count(*) > 1
