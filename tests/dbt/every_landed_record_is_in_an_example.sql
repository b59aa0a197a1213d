-- Records that no example is made of.
with landed as (

    {{ landed_ids() }}

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
