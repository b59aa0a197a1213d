-- Why hits on protected splits do not drop an example: each n-gram with the number of texts that hold it. One row per
-- example with such hits.
with hits as (

    select distinct
        example_id,
        benchmark,
        ngram,
        num_texts
    from {{ ref("contamination_hits") }}
    where is_protected and is_excused

)

select
    example_id,
    string_agg({{ excuse("hits") }}, '; ' order by benchmark, ngram) as evidence
from hits
group by example_id
