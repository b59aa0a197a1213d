{{ config(materialized="extended", key="example_id", follows=["example_facts"]) }}
-- Benchmarks are judged on, not trained on, so their licence is no reason.
with facts as (

    select
        example_id,
        kind,
        license,
        problem,
        is_empty
    from {{ ref("example_facts") }}

),

-- SPDX identifiers are equal whatever their case.
listed as (

    select
        coalesce(list(lower(license)), []) as known,
        coalesce(list(lower(license)) filter (where is_allowed), []) as allowed
    from {{ ref("licences") }}

),

-- Each licence is judged once, however many examples are under it.
licences as (

    select
        given.license,
        case
            when not list_has_all(listed.known, {{ licence_terms("given.license") }}) then 'licence_not_listed'
            when not list_has_all(listed.allowed, {{ licence_terms("given.license") }}) then 'licence_not_allowed'
        end as reason
    from (select distinct license from facts where license is not null) as given
    cross join listed

),

judged as (

    select
        facts.example_id,
        facts.license,
        case
            when facts.problem is not null then facts.problem
            when facts.is_empty then 'empty'
            when facts.kind != 'benchmark' then licences.reason
        end as reason
    from facts
    left join licences on facts.license = licences.license

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
