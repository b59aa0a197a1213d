-- Benchmark records with their item as one JSON object, its key where the file gives one, and the entry of
-- contracts/reference/benchmarks.csv that says how to read it. One row per record.
with records as (

    select
        *,
        cast(payload as json) as parsed,
        coalesce(options ->> 'suite', source) as collection,
        case when format in ('keyed_questions', 'answers_by_key') then json_keys(payload)[1] end as member,
        regexp_extract(path, '([^/]+?)(\.[^./]+)?$', 1) as stem
    from {{ ref("stg_benchmark__records") }}

),

entries as (

    -- Of several globs that match a path the longest counts.
    select
        records.record_id,
        arg_max(benchmarks, struct_pack(n := strlen(benchmarks.path), path := benchmarks.path)) as entry
    from records
    inner join {{ ref("benchmarks") }} as benchmarks
        on records.collection = benchmarks.collection and records.path glob benchmarks.path
    group by records.record_id

)

select
    records.record_id,
    records.source,
    records.format,
    records.license,
    records.observed_at,
    records.options,
    records.stem,
    entries.entry,
    records.format in ('answers_by_id', 'answers_by_key') as is_answer,
    case
        when records.format = 'arc_agi'
            then json_object(
                'train', records.parsed -> '$.train',
                'input', records.parsed -> '$.test[*].input',
                'output', records.parsed -> '$.test[*].output'
            )
        when records.member is not null
            then records.parsed -> ('/' || replace(replace(records.member, '~', '~0'), '/', '~1'))
        else records.parsed
    end as body,
    case when records.format = 'arc_agi' then records.stem else records.member end as file_key
from records
left join entries on records.record_id = entries.record_id
