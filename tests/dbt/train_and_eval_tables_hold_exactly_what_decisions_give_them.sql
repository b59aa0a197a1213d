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

(select 'missing' as problem, * from given except all select 'missing', * from held)
union all
(select 'too much' as problem, * from held except all select 'too much', * from given)
