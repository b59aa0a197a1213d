-- Benchmarks are judged on, not trained on, so their licence is no reason.
with examples as (

    select * from {{ ref("examples") }}

),

licences as (

    select * from {{ ref("licences") }}

),

judged as (

    select
        examples.example_id,
        examples.license,
        case
            when examples.problem is not null then examples.problem
            when trim(examples.text) = '' and not {{ has_trainable_turn("examples.messages") }} then 'empty'
            when examples.kind = 'benchmark' or examples.license is null or licences.is_allowed then null
            when licences.license is null then 'licence_not_listed'
            else 'licence_not_allowed'
        end as reason
    from examples
    left join licences on examples.license = licences.license

),

final as (

    select
        example_id,
        reason,
        cast(null as varchar) as kept_id,
        case when reason in ('licence_not_listed', 'licence_not_allowed') then license end as evidence
    from judged
    where reason is not null

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
