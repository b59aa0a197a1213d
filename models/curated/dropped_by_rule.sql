-- Benchmarks are judged on, not trained on, so their licence is no reason.
with examples as (

    select * from {{ ref("examples") }}

),

-- SPDX identifiers are equal whatever their case.
licences as (

    select
        coalesce(list(lower(license)), []) as listed,
        coalesce(list(lower(license)) filter (where is_allowed), []) as allowed
    from {{ ref("licences") }}

),

judged as (

    select
        examples.example_id,
        examples.license,
        case
            when examples.problem is not null then examples.problem
            when {{ is_blank("examples.text") }} and not {{ has_trainable_turn("examples.messages") }} then 'empty'
            when examples.kind = 'benchmark' or examples.license is null then null
            when not list_has_all(licences.listed, {{ licence_terms("examples.license") }}) then 'licence_not_listed'
            when not list_has_all(licences.allowed, {{ licence_terms("examples.license") }}) then 'licence_not_allowed'
        end as reason
    from examples
    cross join licences

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
