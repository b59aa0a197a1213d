with dropped as (

    {% for stage in stages() %}
    select
        '{{ stage.name }}' as stage,
        example_id
    from {{ ref(stage.model) }}
    {{ "union all" if not loop.last }}
    {% endfor %}

)

select
    example_id,
    list(stage order by stage) as stages
from dropped
group by example_id
having count(*) > 1
