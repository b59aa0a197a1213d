"""Benchmark items as staged: where each suite keeps its fields, answers of their own, splits that are protected."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.dbt_lake import DbtLake

pytestmark = pytest.mark.integration
SOURCES = ("arc_agi", "bbh", "bfcl", "decon_bundled", "deepseek_math", "gsm8k", "humaneval", "ifeval", "pubmedqa")
OWN = [
    {"qid": "q1", "passage": "Bees fly.", "prompt": "Do bees fly?", "options": ["yes", "no"], "answerKey": "A"},
    {"qid": "q2", "question": "2 + 2?", "choices": {"text": ["3", "4"], "label": ["A", "B"]}, "answer": 4},
    {"id": 7, "question": [["not", "text"], 3], "target": {"any": "shape"}},
    {"question": "", "answer": "nothing was asked"},
]


@pytest.fixture(scope="module")
def lake(data: Path, tmp_path_factory: pytest.TempPathFactory) -> DbtLake:
    """Every benchmark landed, and one that the registry does not know, an answer without a question in it."""
    folder = tmp_path_factory.mktemp("benchmark")
    lake = DbtLake(folder)
    for source in SOURCES:
        lake.land(data / "eval" / source, "benchmark", source)
    own = folder / "own"
    own.mkdir()
    (own / "validation.jsonl").write_text("".join(json.dumps(row) + "\n" for row in OWN))
    (own / "answers.jsonl").write_text(json.dumps({"id": 99, "ground_truth": "of no question"}) + "\n")
    lake.land(own, "benchmark", "bees")
    lake.land(own / "validation.jsonl", "benchmark", "again", options={"suite": "gsm8k", "split": "train"})
    lake.dbt(
        "build",
        "--select",
        "benchmarks",
        "stg_benchmark__records",
        "stg_benchmark__bodies",
        "stg_benchmark__fields",
        "stg_benchmark__items",
    )
    with duckdb.connect(lake.workspace) as connection:  # read once; the model is a view
        connection.execute("create table items as select * from stg_benchmark__items")
    return lake


def items(lake: DbtLake, where: str, columns: str) -> list[tuple[Any, ...]]:
    return lake.rows(f"select {columns} from items where {where} order by all")


def test_every_record_is_in_exactly_one_item(lake: DbtLake) -> None:
    assert lake.rows("select record_id from stg_benchmark__records order by all") == lake.rows(
        "select unnest(record_ids) as record_id from items order by all"
    )


def test_each_suite_has_its_items_by_split_and_only_train_splits_are_open(lake: DbtLake) -> None:
    staged = lake.rows(
        "select source, suite, split, is_protected, count(*) from items "
        "where source not in ('bees', 'again') group by all order by all"
    )
    assert staged == [
        ("arc_agi", "arc_agi", "training", False, 400),
        ("bbh", "bbh", "test", True, 2865),
        ("bfcl", "bfcl", "test", True, 1498),
        ("decon_bundled", "agieval", "train", True, 5774),
        ("decon_bundled", "decon_fixtures", "test", True, 12),
        ("decon_bundled", "gsm8k", "test", True, 1319),
        ("decon_bundled", "mmlu", "dev", True, 1140),
        ("decon_bundled", "mmlu", "test", True, 13453),
        ("decon_bundled", "mmlu", "validation", True, 6124),
        ("deepseek_math", "agieval", "test", True, 469),
        ("deepseek_math", "cmath", "test", True, 1098),
        ("deepseek_math", "gsm8k", "test", True, 1319),
        ("deepseek_math", "mgsm", "test", True, 250),
        ("deepseek_math", "mmlu", "test", True, 3008),
        ("deepseek_math", "ocw_courses", "test", True, 272),
        ("deepseek_math", "sat_math", "test", True, 32),
        ("gsm8k", "gsm8k", "model_solutions", False, 1319),
        ("gsm8k", "gsm8k", "test", True, 1319),
        ("gsm8k", "gsm8k", "train", False, 7473),
        ("humaneval", "humaneval", "example", False, 1),
        ("humaneval", "humaneval", "test", True, 164),
        ("ifeval", "ifeval", "test", True, 541),
        ("pubmedqa", "pubmedqa", "ori_pqal", True, 500),
        ("pubmedqa", "pubmedqa", "test", True, 500),
    ]
    assert items(lake, "source not in ('bees', 'again') and problem is not null", "example_id") == []


def test_questions_and_answers_are_those_of_the_files(lake: DbtLake, data: Path) -> None:
    lines = (data / "eval/gsm8k/train.jsonl").read_text().splitlines()
    expected = sorted((row["question"], row["answer"]) for row in map(json.loads, lines))
    assert items(lake, "source = 'gsm8k' and split = 'train'", "question, answer") == expected
    lines = (data / "eval/ifeval/instruction_following_eval/data/input_data.jsonl").read_text().splitlines()
    expected = sorted((row["prompt"], None, str(row["key"])) for row in map(json.loads, lines))
    assert items(lake, "source = 'ifeval'", "question, answer, item_key") == expected
    lines = (data / "eval/deepseek_math/mgsm_zh/mgsm_zh.jsonl").read_text().splitlines()
    expected = sorted((row["messages"][0]["content"], row["answer"]) for row in map(json.loads, lines))
    staged = items(lake, "suite = 'mgsm'", "question, answer")
    assert [(question.strip(), answer) for question, answer in staged] == sorted((q.strip(), a) for q, a in expected)


def test_an_answer_of_its_own_joins_its_question_by_id(lake: DbtLake, data: Path) -> None:
    folder = data / "eval/bfcl"
    answers = {
        row["id"]: row["ground_truth"]
        for file in (folder / "possible_answer").glob("*.json")
        for row in map(json.loads, file.read_text().splitlines())
    }
    questions = {
        row["id"]: "\n".join(turn["content"] for turns in row["question"] for turn in turns)
        for file in folder.glob("BFCL_*.json")
        for row in map(json.loads, file.read_text().splitlines())
    }
    staged = {
        key: (question, json.loads(answer) if answer else None, records)
        for key, question, answer, records in items(
            lake, "source = 'bfcl'", "item_key, question, answer, len(record_ids)"
        )
    }
    assert staged == {key: (q, answers.get(key), 2 if key in answers else 1) for key, q in questions.items()}


def test_the_test_split_of_pubmedqa_is_told_by_its_ground_truth(lake: DbtLake, data: Path) -> None:
    truth = json.loads((data / "eval/pubmedqa/data/test_ground_truth.json").read_text())
    questions = json.loads((data / "eval/pubmedqa/data/ori_pqal.json").read_text())
    staged = items(lake, "source = 'pubmedqa' and split = 'test'", "item_key, answer, question")
    assert {key: answer for key, answer, _ in staged} == truth
    for key, _, question in staged:
        assert question == "\n".join(questions[key]["CONTEXTS"]) + "\n\n" + questions[key]["QUESTION"]


def test_choices_are_lists_and_absent_ones_null(lake: DbtLake, data: Path) -> None:
    lines = (data / "eval/deepseek_math/agieval/gaokao-mathqa.jsonl").read_text().splitlines()
    expected = Counter(tuple(json.loads(line)["options"]) for line in lines)
    staged = items(lake, "suite = 'agieval' and source = 'deepseek_math' and choices is not null", "choices")
    assert Counter(tuple(choices) for (choices,) in staged) == expected
    assert items(lake, "choices = []", "example_id") == []


def test_a_suite_that_nobody_registered_is_read_by_usual_names_and_protected(lake: DbtLake) -> None:
    columns = "item_key, split, question, choices, answer, problem, is_protected"
    assert items(lake, "source = 'bees'", columns) == [
        ("7", "validation", '[["not","text"],3]', None, '{"any":"shape"}', None, True),
        ("99", "answers", None, None, "of no question", "unreadable_shape", True),
        ("q1", "validation", "Bees fly.\n\nDo bees fly?", ["yes", "no"], "A", None, True),
        ("q2", "validation", "2 + 2?", ["3", "4"], "4", None, True),
        (None, "validation", None, None, "nothing was asked", "unreadable_shape", True),
    ]


def test_suite_and_split_of_the_landing_count_before_all_else(lake: DbtLake) -> None:
    assert set(items(lake, "source = 'again'", "suite, split")) == {("gsm8k", "train")}
