-- A waterfall: each step takes what the one before it kept, so every line sums, and the last one keeps what is kept.
with decisions as (

    select * from {{ ref("decisions") }}

),

groups as (

    select
        kind,
        source,
        count(*) as examples
    from decisions
    group by kind, source

),

-- Every stage has a line in every group; one that drops nothing has no reason.
stages as (

    {% for stage in stages() %}
    select
        {{ loop.index }} as place,
        '{{ stage.name }}' as stage
    {{ "union all" if not loop.last }}
    {% endfor %}

),

dropped as (

    select
        groups.kind,
        groups.source,
        groups.examples,
        stages.place,
        stages.stage,
        decisions.reason,
        count(decisions.example_id) as rows_dropped
    from groups
    cross join stages
    left join decisions
        on
            groups.kind = decisions.kind
            and groups.source = decisions.source
            and stages.stage = decisions.stage
    group by all

),

steps as (

    select
        *,
        row_number() over (partition by kind, source order by place, reason) as step,
        sum(rows_dropped) over (partition by kind, source order by place, reason) as dropped_so_far
    from dropped

),

final as (

    select
        {{ h(["kind", "source", "stage", "coalesce(reason, '')"]) }} as step_id,
        kind,
        source,
        step,
        stage,
        reason,
        cast(examples - dropped_so_far + rows_dropped as bigint) as rows_in,
        cast(examples - dropped_so_far as bigint) as rows_kept,
        rows_dropped
    from steps

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
