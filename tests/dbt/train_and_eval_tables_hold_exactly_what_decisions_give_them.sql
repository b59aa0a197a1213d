with given as (

    select
        unnest(uses) as table_name,
        example_id
    from {{ ref("decisions") }}
    where kept

),

held as (

    {% for table in ["train_sft", "train_preference", "train_unpaired", "train_pretrain", "eval_items"] %}
    select
        '{{ table }}' as table_name,
        example_id
    from {{ ref(table) }}
    {{ "union all" if not loop.last }}
    {% endfor %}

)

select
    coalesce(given.table_name, held.table_name) as table_name,
    coalesce(given.example_id, held.example_id) as example_id
from given
full join held on given.table_name = held.table_name and given.example_id = held.example_id
where given.example_id is null or held.example_id is null
