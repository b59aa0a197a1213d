with given as (

    select
        unnest(uses) as table_name,
        example_id
    from {{ ref("decisions") }}
    where kept

),

listed as (

    {% for table in train_tables() + ["eval_items"] %}
    select
        '{{ table }}' as table_name,
        example_id
    from {{ ref(table) }}
    {{ "union all" if not loop.last }}
    {% endfor %}

)

select
    coalesce(given.table_name, listed.table_name) as table_name,
    coalesce(given.example_id, listed.example_id) as example_id
from given
full join listed on given.table_name = listed.table_name and given.example_id = listed.example_id
where given.example_id is null or listed.example_id is null
