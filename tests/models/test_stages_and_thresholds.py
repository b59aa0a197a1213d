"""A project of one's own: one more stage, and another number of listed items, each where it is written once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lake.contract import sync
from lake.init import init
from tests.dbt_lake import DbtLake

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

USER = {"role": "user", "content": "What is a lake, and why is it not a river?"}
ANSWER = {"role": "assistant", "content": "Water with land around it, and it stays where it is."}
SHORT_USER = {"role": "user", "content": "Hm?"}
CHATS = [
    [USER, ANSWER],
    [USER, ANSWER, USER],
    [USER],
    [SHORT_USER],
    [SHORT_USER, {"role": "assistant", "content": "Hm."}],
]
WORDS = ("quokka", "lantern", "meadow", "granite", "violin", "harbour", "saffron", "thunder", "compass", "orchard")
QUESTIONS = [" ".join(f"{word}{'abcdef'[number]}" for word in WORDS * 2) for number in range(6)]

SHORT = """
with survivors as (

    {{ survivors("short") }}

),

final as (

    select
        examples.example_id,
        'short' as reason,
        cast(null as varchar) as kept_id,
        cast(null as varchar) as evidence
    from survivors
    inner join {{ ref("examples") }} as examples on survivors.example_id = examples.example_id
    where len(examples.text) < 20

)

select
    *,
    {{ row_hash("final") }} as row_hash
from final
"""


def write(path: Path, rows: list[Any]) -> Path:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> DbtLake:
    """A project with a stage `short` after contamination, built on short chats and on a page of six questions."""
    folder = tmp_path_factory.mktemp("own")
    project = folder / "project"
    init(project)
    contamination = '{"name": "contamination", "model": "dropped_as_contaminated"},'
    short = '{"name": "short", "model": "dropped_as_short"},'
    edit(project / "transforms/macros/stages.sql", contamination, f"{contamination}\n        {short}")
    (project / "models/curated/dropped_as_short.sql").write_text(SHORT)
    contracts = project / "contracts/curated"
    contract = (contracts / "dropped_as_contaminated.yaml").read_text("utf-8")
    contract = contract.replace("dropped_as_contaminated", "dropped_as_short").replace("- contaminated", "- short")
    (contracts / "dropped_as_short.yaml").write_text(contract)
    edit(contracts / "decisions.yaml", "- contamination\n", "- contamination\n        - short\n")
    sync(project)
    lake = DbtLake(folder, project)
    lake.land(write(folder / "chats.jsonl", [{"messages": chat} for chat in CHATS]), "synthetic", "chats")
    quiz = [{"question": question, "answer": "1"} for question in QUESTIONS]
    lake.land(write(folder / "quiz.jsonl", quiz), "benchmark", "quiz")
    lake.land(write(folder / "page.jsonl", [{"text": "\n\n".join(QUESTIONS)}]), "web", "page")
    lake.dbt("build")
    return lake


def test_decisions_and_funnel_know_a_new_stage(lake: DbtLake) -> None:
    query = "select len(messages), stage from decisions join examples using (example_id) where source = 'chats'"
    decided = lake.rows(query.replace("source", "decisions.source") + " order by all")
    assert decided == [(1, "outcome"), (1, "short"), (2, "short"), (2, None), (3, None)]
    steps = lake.rows("select list(stage order by step), list(rows_dropped order by step) from funnel group by source")
    order = ["rule", "contamination", "short", "outcome", "exact"]
    assert sorted(steps) == sorted([(order, [0, 0, 2, 1, 0]), (order, [0] * 5), (order, [0, 1, 0, 0, 0])])


def test_a_stage_follows_those_before_it_and_none_after_it(lake: DbtLake) -> None:
    nodes = json.loads((lake.folder / "target/manifest.json").read_text("utf-8"))["parent_map"]

    def ancestors(model: str) -> set[str]:
        parents = {p.removeprefix("model.lakewright.") for p in nodes.get(f"model.lakewright.{model}", [])}
        return parents.union(*map(ancestors, parents))

    stages = ["rule", "contaminated", "short", "outcome", "exact"]
    models = [f"dropped_{'by' if stage in ('rule', 'outcome') else 'as'}_{stage}" for stage in stages]
    for place, model in enumerate(models):
        assert [m for m in models if m in ancestors(model)] == models[:place]
    assert {*models} <= ancestors("decisions")


def test_another_number_of_listed_items_computes_no_memo(lake: DbtLake) -> None:
    query = "select count(distinct item_id), min(num_items) from contamination_hits"
    assert lake.rows(query) == [(6, 6)]
    before = lake.rows("select key, fingerprint from memo.contamination order by all")
    thresholds = lake.project / "contracts/reference/thresholds.csv"
    edit(thresholds, "contamination_listed_items,32,", "contamination_listed_items,2,")
    lake.dbt("build")
    assert lake.rows(query) == [(2, 6)]
    assert {*lake.computed().values()} == {0}
    assert lake.rows("select key, fingerprint from memo.contamination order by all") == before
    assert lake.rows("select stage from decisions where source = 'page'") == [("contamination",)]


def test_more_listed_items_than_the_memo_keeps_and_a_missing_threshold_fail_the_build(lake: DbtLake) -> None:
    thresholds = lake.project / "contracts/reference/thresholds.csv"
    edit(thresholds, "contamination_listed_items,2,", "contamination_listed_items,65,")
    output = lake.dbt("build", "--select", "thresholds", expect=1)
    assert "FAIL 1 no_threshold_asks_for_more_items_than_the_memo_keeps" in output
    edit(thresholds, "contamination_listed_items,65,", "another,65,")
    output = lake.dbt("build", "--select", "thresholds", "contamination_hits", expect=1)
    assert "thresholds.csv has no single row contamination_listed_items" in output
