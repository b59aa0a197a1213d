-- What is searched for benchmark items: what user and assistant say, and documents; benchmarks are not. Fields of an
-- example are searched apart, so that nothing matches across them. One row per example and field.
with examples as (

    select * from {{ ref("examples") }} where kind != 'benchmark'

),

continuations as (

    select
        example_id,
        unnest(['chosen', 'rejected']) as field,
        unnest([{{ spoken_by("chosen", "assistant") }}, {{ spoken_by("rejected", "assistant") }}]) as text
    from examples
    where shape = 'pair'

)

select example_id, 'text' as field, text, text_hash from examples where shape = 'document' and text != ''

union all

select example_id, 'prompt' as field, prompt as text, prompt_hash as text_hash from examples
where shape != 'document' and prompt is not null

union all

select example_id, 'response' as field, response as text, response_hash as text_hash from examples
where shape not in ('document', 'pair') and response is not null

union all

select example_id, field, text, {{ h(["text"]) }} as text_hash from continuations where text is not null
