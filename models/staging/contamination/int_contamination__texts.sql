-- Which suites a text has not been searched for yet; memo_key is that of the result that is there, or that is to come.
-- A result covers several suites, so that a text without hits is one short row. One row per text.
with texts as (

    select distinct text_hash from {{ ref("int_contamination__fields") }}

),

suites as (

    select list(distinct suite order by suite) as suites from {{ ref("int_contamination__items") }}

),

results as (

    select
        text_hash,
        min(key) as key,
        flatten(list(scanned)) as scanned
    from {{ source("memo", "contamination") }}
    group by text_hash

),

compared as (

    select
        texts.text_hash,
        results.key,
        case
            when suites.suites is null or list_has_all(results.scanned, suites.suites) then []
            else list_filter(suites.suites, lambda s: not coalesce(list_contains(results.scanned, s), false))
        end as missing
    from texts
    cross join suites
    left join results on texts.text_hash = results.text_hash

)

select
    text_hash,
    missing,
    case
        when missing = [] then key
        else {{ memo_key("contamination", ["text_hash", "array_to_string(missing, ' ')"]) }}
    end as memo_key
from compared
