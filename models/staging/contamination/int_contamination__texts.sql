-- Which suites a text has not been searched for yet. The texts of the last release were searched for its suites, so
-- only new texts and new suites are looked at. A result covers up to 120 suites; memo_key is that of the one to come.
-- One row per text and 120 suites that lacks a result.
with suites as (

    select
        suite,
        suite not in (
            select published.suite
            from _base.contamination_suites as published
            where not exists (select 1 from _lake.lost where kernel = 'contamination')
        ) as is_new,
        row_number() over (order by suite) - 1 as place
    from {{ ref("contamination_suites") }}

),

-- Sets of suites are bits of a hugeint: lists of suites, for millions of texts, would not fit into memory.
numbered as (

    select
        *,
        place // 120 as block,
        cast(1 as hugeint) << cast(place % 120 as hugeint) as bit
    from suites

),

wanted as (

    select
        block,
        bit_or(bit) as all_bits,
        coalesce(bit_or(bit) filter (where is_new), 0) as new_bits
    from numbered
    group by block

),

new_texts as (

    select distinct text_hash from ({{ searched_fields("_added.example_facts") }}) as fields

),

old_texts as (

    select distinct text_hash
    from {{ ref("int_contamination__fields") }}
    where
        (select count(*) from suites where is_new) > 0
        and text_hash not in (select text_hash from new_texts)

),

asked as (

    select
        new_texts.text_hash,
        wanted.block,
        wanted.all_bits as bits
    from new_texts
    cross join wanted

    union all

    select
        old_texts.text_hash,
        wanted.block,
        wanted.new_bits as bits
    from old_texts
    inner join wanted on wanted.new_bits != 0

),

results as (

    select
        text_hash,
        scanned
    from {{ source("memo", "contamination") }}
    where text_hash in (select text_hash from new_texts)

    union all

    select
        text_hash,
        scanned
    from {{ source("memo", "contamination") }}
    where
        (select count(*) from suites where is_new) > 0
        and list_has_any(scanned, (select list(suite) from suites where is_new))

),

searched as (

    select
        results.text_hash,
        numbered.block,
        bit_or(numbered.bit) as bits
    from (select text_hash, unnest(scanned) as suite from results) as results
    inner join numbered on results.suite = numbered.suite
    group by results.text_hash, numbered.block

),

lacking as (

    select
        asked.text_hash,
        asked.block,
        asked.bits & ~coalesce(searched.bits, 0) as bits
    from asked
    left join searched on asked.text_hash = searched.text_hash and asked.block = searched.block

),

-- One list per set of suites, of which there are few.
sets as (

    select
        lacking.block,
        lacking.bits,
        list(numbered.suite order by numbered.suite) as missing
    from (select distinct block, bits from lacking where bits != 0) as lacking
    inner join numbered on lacking.block = numbered.block and numbered.bit & lacking.bits != 0
    group by lacking.block, lacking.bits

)

select
    lacking.text_hash,
    sets.missing,
    {{ memo_key("contamination", ["lacking.text_hash", "array_to_string(sets.missing, ' ')"]) }} as memo_key
from lacking
inner join sets on lacking.block = sets.block and lacking.bits = sets.bits
