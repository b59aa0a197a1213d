-- Records that no example is made of.
with landed as (

    {% for kind in ["traces", "web", "synthetic", "benchmark"] %}
    select
        '{{ kind }}' as kind,
        source,
        record_id
    from {{ source("raw", kind) }}
    {{ "union all" if not loop.last }}
    {% endfor %}

),

used as (

    select
        kind,
        source,
        unnest(record_ids) as record_id
    from {{ ref("examples") }}

)

select * from landed
except
select * from used
