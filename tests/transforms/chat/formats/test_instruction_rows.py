"""Alpaca, Self-Instruct, prompt and completion: rows to chats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from transforms.chat.chats import units_of


def units(record: object, form: str) -> list[dict[str, Any]]:
    return units_of(json.dumps(record), form)


def said(unit: dict[str, Any], field: str = "messages") -> list[tuple[str, str | None]]:
    return [(m["role"], m["content"]) for m in unit[field]]


def test_instruction_and_input_are_one_turn_with_an_empty_line_between() -> None:
    (unit,) = units({"instruction": "Add.", "input": "1 2", "output": "3"}, "alpaca")
    assert said(unit) == [("user", "Add.\n\n1 2"), ("assistant", "3")]
    (unit,) = units({"instruction": "Hi", "input": "", "response": "Hello"}, "alpaca")
    assert said(unit) == [("user", "Hi"), ("assistant", "Hello")]


def test_system_and_history_stand_before_the_instruction() -> None:
    row = {"instruction": "c", "output": "d", "system": "s", "history": [["a", "b"]]}
    assert said(units(row, "alpaca")[0]) == [
        ("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"),
    ]  # fmt: skip


def test_a_prediction_keeps_the_answer_of_the_model_and_not_the_reference() -> None:
    row = {"prompt": "rendered", "instruction": "i", "input": "x", "response": "model", "target": "reference"}
    assert said(units(row, "alpaca")[0]) == [("user", "i\n\nx"), ("assistant", "model")]


def test_each_instance_of_a_task_is_an_example_and_a_broken_one_says_so() -> None:
    task = {
        "instruction": "Double.",
        "instances": [{"input": "1", "output": "2"}, {"input": "2"}, {"input": "", "output": "?"}],
    }
    first, broken, last = units(task, "self_instruct")
    assert said(first) == [("user", "Double.\n\n1"), ("assistant", "2")]
    assert (broken["messages"], broken["problem"]) == (None, "unreadable_shape")
    assert said(last) == [("user", "Double."), ("assistant", "?")]


def test_a_completion_loses_the_mark_of_its_end_and_nothing_else() -> None:
    (unit,) = units({"prompt": "Q\n", "completion": " Yes<|endoftext|>"}, "prompt_completion")
    assert said(unit) == [("user", "Q\n"), ("assistant", " Yes")]


def test_prompt_and_completion_may_be_lists_of_messages() -> None:
    row = {
        "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}],
        "completion": [{"role": "assistant", "content": "a"}],
    }
    assert said(units(row, "prompt_completion")[0]) == [("system", "s"), ("user", "q"), ("assistant", "a")]


def test_a_row_says_which_model_prompt_and_seed_made_it() -> None:
    row = {
        "instruction": "i",
        "output": "o",
        "model": "gpt-4",
        "meta": {"seed": 3, "temperature": 0.7, "template_id": "t1"},
    }
    (unit,) = units({**row, "seed_task_id": "s9", "verdict": "ok", "judge": "rm"}, "alpaca")
    assert unit["provenance"] == {
        "generator_model": "gpt-4",
        "prompt_id": "t1",
        "verifier": "rm",
        "verifier_verdict": "ok",
        "seed": 3,
        "temperature": 0.7,
        "parent_ids": ["s9"],
    }


@pytest.mark.parametrize(
    ("form", "record"),
    [
        ("alpaca", {"instruction": "i"}),
        ("alpaca", {"instruction": 1, "output": "o"}),
        ("self_instruct", {"instruction": "i", "instances": []}),
        ("prompt_completion", {"prompt": "p"}),
        ("prompt_completion", {"prompt": "p", "completion": 7}),
        ("alpaca", [1]),
    ],
)
def test_a_record_of_another_shape_is_one_unit_that_says_so(form: str, record: object) -> None:
    assert [u["problem"] for u in units(record, form)] == ["unreadable_shape"]


@pytest.mark.parametrize(
    ("file", "form", "records", "examples"),
    [
        ("gpteacher/Roleplay/roleplay-simple-deduped-roleplay-instruct.json", "alpaca", 1923, 1923),
        ("gpteacher/seedprompts.jsonl", "self_instruct", 175, 175),
        ("gpteacher/code_seed_tasks.jsonl", "self_instruct", 21, 21),
        ("llamafactory_sft_dpo/data/identity.json", "alpaca", 91, 91),
        ("self_instruct/human_eval/predictions/text-davinci-003_predictions.jsonl", "alpaca", 252, 252),
    ],
)
def test_every_row_of_the_real_files_is_read(data: Path, file: str, form: str, records: int, examples: int) -> None:
    text = (data / "synthetic" / file).read_text()
    rows = json.loads(text) if file.endswith(".json") else [json.loads(line) for line in text.splitlines()]
    read = [unit for row in rows for unit in units(row, form)]
    assert (len(rows), len(read)) == (records, examples)
    answers = [row.get("output", row.get("response")) for row in rows] if form == "alpaca" else [
        instance["output"] for row in rows for instance in row["instances"]
    ]  # fmt: skip
    assert [unit["messages"][-1]["content"] for unit in read] == answers


def test_every_template_of_t0_gives_an_answer_without_the_mark(data: Path) -> None:
    files = sorted((data / "synthetic/self_instruct").rglob("data_per_template/*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert len(rows) == 1600
    for row in rows:
        (unit,) = units(row, "prompt_completion")
        assert said(unit) == [("user", row["prompt"]), ("assistant", row["completion"][: -len("<|endoftext|>")])]


def test_a_prompt_may_be_named_by_a_number() -> None:
    row = {"instruction": "a", "output": "b", "prompt_id": 7, "version": 2, "judge": 4}
    (made,) = units_of(json.dumps(row), "alpaca")
    assert made["provenance"] == {"prompt_id": "7", "generator_version": "2"}
