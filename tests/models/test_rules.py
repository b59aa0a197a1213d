"""Rules of curation on rows written for them: what each row becomes, by a real dbt run and a real audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lake.config import LakePaths
from lake.releases.audit import audit
from lake.releases.workspace import LAYERS
from lake.schema import contract, tables
from tests.dbt_lake import DbtLake
from tests.models.test_descriptions import described

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

USER = {"role": "user", "content": "What is a lake?"}
ANSWER = {"role": "assistant", "content": "Water with land around it."}
GREETING = {"role": "assistant", "content": "Hello, how can I help?"}
BYE = {"role": "user", "content": "Thanks, bye."}
SYSTEM = {"role": "system", "content": "Be brief."}
LICENCES = ("mit", "MIT AND apache-2.0", "MIT AND CC-BY-NC-4.0", "MIT AND Homegrown-1.0")
WORDS = ("quokka", "lantern", "meadow", "granite", "violin", "harbour", "saffron", "thunder", "compass", "orchard")


def question(number: int) -> str:
    """Return a question of 20 words whose 13-grams are its own."""
    return " ".join(
        f"{WORDS[(number + place) % 10]}{'abcdefgh'[number % 8] * (number // 8 + 1)}" for place in range(20)
    )


OPEN = [question(n) for n in range(40)]
PROTECTED = " ".join(f"{word}zz{word}" for word in WORDS * 2)


def write(path: Path, rows: list[Any]) -> Path:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> DbtLake:
    """All rows in one build."""
    lake = DbtLake(tmp_path_factory.mktemp("rules"))
    inputs = lake.folder / "in"
    chats = {
        "only_answers": [SYSTEM, ANSWER],
        "greeting": [GREETING, BYE],
        "greeted": [GREETING, USER, ANSWER],
        "asked": [USER],
    }
    for name, messages in chats.items():
        lake.land(write(inputs / f"{name}.jsonl", [{"messages": messages}]), "synthetic", name)
    for reward in (0, 1):
        run = {"traj": [USER, {"role": "assistant", "content": f"Answer {reward}."}, BYE], "reward": float(reward)}
        lake.land(write(inputs / f"run{reward}.jsonl", [run]), "traces", f"run{reward}")
    pair = {"system": "Be brief.", "chosen": "yes", "rejected": "no"}
    lake.land(write(inputs / "pair.jsonl", [pair, pair | {"prompt": "Is it?"}]), "synthetic", "pairs")
    for number, licence in enumerate(LICENCES):
        row = [{"instruction": f"Number {number}?", "output": "It is."}]
        lake.land(write(inputs / f"licence{number}.jsonl", row), "synthetic", f"licence{number}", license=licence)
    blank = [{"text": "\n\t \u3000\u00a0\n"}, {"text": "\n.\n"}]
    lake.land(write(inputs / "blank.jsonl", blank), "web", "blank")
    for split, asked in (("train", OPEN), ("test", [PROTECTED])):
        file = write(inputs / "gsm8k" / f"{split}.jsonl", [{"question": q, "answer": "1"} for q in asked])
        lake.land(file, "benchmark", "gsm8k", root=file.parent)
    page = "\n\n".join([*OPEN, " ".join(PROTECTED.split()[:15])])
    lake.land(write(inputs / "page.jsonl", [{"text": page}]), "web", "page")
    lake.dbt("build")
    return lake


def became(lake: DbtLake, source: str) -> list[tuple[Any, ...]]:
    """Return (uses, stage, reason) of a source's examples."""
    return lake.rows(f"select uses, stage, reason from decisions where source = '{source}' order by all")


def test_a_chat_in_which_no_user_is_answered_trains_nothing(lake: DbtLake) -> None:
    assert became(lake, "only_answers") == [(None, "outcome", "no_user_turn")]
    assert became(lake, "greeting") == [(None, "outcome", "no_user_turn")]
    assert became(lake, "asked") == [(None, "outcome", "no_assistant_turn")]
    assert became(lake, "greeted") == [(["train_sft"], None, None)]


def test_a_pair_whose_prompt_no_user_said_is_incomplete(lake: DbtLake) -> None:
    assert became(lake, "pairs") == [(["train_preference"], None, None), (None, "outcome", "incomplete_pair")]


def test_what_is_judged_ends_a_labelled_chat(lake: DbtLake) -> None:
    assert became(lake, "run1") == [(["train_sft", "train_unpaired"], None, None)]
    assert became(lake, "run0") == [(["train_unpaired"], None, None)]
    query = "select label, list_transform(messages, lambda m: m.role) from train_unpaired order by label"
    assert lake.rows(query) == [(False, ["user", "assistant"]), (True, ["user", "assistant"])]
    assert lake.rows("select len(messages) from train_sft where source = 'run1'") == [(3,)]


def test_licences_are_compared_term_by_term_whatever_their_case(lake: DbtLake) -> None:
    decided = [became(lake, f"licence{n}")[0] for n in range(len(LICENCES))]
    assert [reason for _, _, reason in decided] == [None, None, "licence_not_allowed", "licence_not_listed"]


def test_a_document_of_white_space_is_empty(lake: DbtLake) -> None:
    assert became(lake, "blank") == [(["train_pretrain"], None, None), (None, "rule", "empty")]


def test_no_number_of_open_items_hides_a_protected_one(lake: DbtLake) -> None:
    hits = lake.rows("select count(distinct item_id), count(*) filter (is_protected) from contamination_hits")
    assert hits == [(32, 1)]
    assert became(lake, "page") == [(None, "contamination", "contaminated")]


def test_the_tables_keep_their_contracts(lake: DbtLake) -> None:
    assert audit(LakePaths(lake.home, lake.workspace, lake.project)).tables > 10


def test_what_a_contract_calls_a_view_is_one(lake: DbtLake) -> None:
    query = "select distinct table_name from duckdb_tables() where schema_name in ('main', '_added')"
    built = {name for (name,) in lake.rows(query)}  # of a model that is extended, the rows of its own
    contracts = [t for t in tables(lake.project) if t.split("/")[0] in LAYERS]
    says = {t.split("/")[1]: contract(lake.project, t)["schema"][0]["physicalType"] for t in contracts}
    assert {name: "table" if name in built else "view" for name in says} == says != {}


def test_described_columns_are_columns(lake: DbtLake) -> None:
    columns = set(lake.rows("select table_name, column_name from duckdb_columns() where schema_name = 'main'"))
    named = {(name, column["name"]) for name, model in described().items() for column in model.get("columns", [])}
    assert named - columns == set()
