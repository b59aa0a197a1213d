"""Preference pairs, HH dialogues, KTO labels."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from transforms.chat.chats import CHAT, units_of

U, A, A2 = ({"role": r, "content": c} for r, c in (("user", "q"), ("assistant", "good"), ("assistant", "bad")))


def one(record: object, form: str = "preference") -> dict[str, Any]:
    (unit,) = units_of(json.dumps(record), form)
    return unit


def said(turns: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(m["role"], m["content"]) for m in turns]


SHAPES = {
    "texts with a prompt": {"prompt": "q", "chosen": "good", "rejected": "bad"},
    "texts with a question": {"question": "q", "chosen": "good", "rejected": "bad"},
    "texts with a list prompt": {"prompt": [U], "chosen": "good", "rejected": "bad"},
    "turns with a prompt": {"prompt": [U], "chosen": [A], "rejected": [A2]},
    "whole conversations": {"chosen": [U, A], "rejected": [U, A2]},
    "whole conversations and the prompt again": {"prompt": "q", "chosen": [U, A], "rejected": [U, A2]},
    "LLaMA-Factory v1": {"chosen_messages": [U, A], "rejected_messages": [U, A2]},
    "LLaMA-Factory ShareGPT": {
        "conversations": [{"from": "human", "value": "q"}],
        "chosen": {"from": "gpt", "value": "good"},
        "rejected": {"from": "gpt", "value": "bad"},
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_gives_the_same_pair(shape: str) -> None:
    unit = one(SHAPES[shape])
    assert said(unit["messages"]) == [("user", "q")]
    assert said(unit["chosen"]) == [("assistant", "good")]
    assert said(unit["rejected"]) == [("assistant", "bad")]


def test_the_prompt_is_what_both_sides_begin_with_message_for_message() -> None:
    system, more = {"role": "system", "content": "s"}, {"role": "user", "content": "and?"}
    unit = one({"chosen": [system, U, A, more, A], "rejected": [system, U, A, more, A2]})
    assert said(unit["messages"]) == [("system", "s"), ("user", "q"), ("assistant", "good"), ("user", "and?")]
    unit = one({"chosen": [U, A, more, A], "rejected": [U, A2, more, A]})
    assert (len(unit["messages"]), len(unit["chosen"]), len(unit["rejected"])) == (1, 3, 3)


def test_equal_sides_keep_their_last_message() -> None:
    unit = one({"chosen": [U, A], "rejected": [U, A]})
    assert said(unit["chosen"]) == said(unit["rejected"]) == [("assistant", "good")]


def test_a_pair_without_a_prompt_is_unreadable() -> None:
    for record in (
        {"chosen": "a", "rejected": "b"},
        {"prompt": "q", "chosen": [], "rejected": "b"},
        {"chosen": [U, A]},
    ):
        assert one(record)["problem"] == "unreadable_shape"


def test_a_dialogue_splits_at_its_marks_only() -> None:
    text = "\n\nHuman: say Human: twice\n\nand go on\n\nAssistant: Human: Human:"
    unit = one({"chosen": text, "rejected": text + "!"}, "hh")
    assert said(unit["messages"]) == [("user", "say Human: twice\n\nand go on")]
    assert said(unit["chosen"]) == [("assistant", "Human: Human:")]


def test_every_dialogue_of_hh_is_a_pair_that_joins_back_to_its_text(data: Path) -> None:
    lines = gzip.decompress((data / "synthetic/hh_rlhf/harmless-base/test.jsonl.gz").read_bytes()).decode().splitlines()
    assert len(lines) == 2312
    for line in lines:
        row, unit = json.loads(line), one(json.loads(line), "hh")
        for side in ("chosen", "rejected"):
            turns = unit["messages"] + unit[side]
            marks = {"user": "Human:", "assistant": "Assistant:"}
            joined = "".join(f"{marks[m['role']]}{m['content']}" for m in turns)
            assert "".join(joined.split()) == "".join(row[side].split())
        assert unit["chosen"] != unit["rejected"]


@pytest.mark.parametrize("file", ["dpo_en_demo.json", "dpo_zh_demo.json"])
def test_every_pair_of_the_demo_files_is_read(data: Path, file: str) -> None:
    rows = json.loads((data / "synthetic/llamafactory_sft_dpo/data" / file).read_text())
    assert len(rows) == 300
    for row in rows:
        unit = one(row)
        assert [m["content"] for m in unit["messages"]] == [t["value"] for t in row["conversations"]]
        assert said(unit["chosen"]) == [("assistant", row["chosen"]["value"])]
        assert said(unit["rejected"]) == [("assistant", row["rejected"]["value"])]


def test_every_weighted_pair_of_the_demo_file_is_read(data: Path) -> None:
    lines = (data / "synthetic/llamafactory_sft_dpo/data/v1_dpo_demo.jsonl").read_text().splitlines()
    units = [one(json.loads(line)) for line in lines]
    assert len(units) == 10
    assert {tuple(m["weight"] for m in u["messages"]) for u in units} == {(0, 0)}
    assert {u[side][0]["weight"] for u in units for side in ("chosen", "rejected")} == {1}


@pytest.mark.parametrize("label", [True, 1, "true", "True", False, 0, "false", "False"])
def test_a_label_may_be_a_boolean_a_number_or_a_word(label: object) -> None:
    wanted = label in (True, "true", "True")
    for record in (
        {"messages": [U, A], "label": label},
        {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "good"}], "kto_tag": label},
        {"prompt": "q", "completion": "good", "label": label},
        {"question": "q", "answer": "good", "label": label},
    ):
        unit = one(record, "kto")
        assert said(unit["messages"]) == [("user", "q"), ("assistant", "good")] and unit["label"] is wanted


def test_the_demo_file_of_kto_keeps_its_labels(data: Path) -> None:
    rows = json.loads((data / "synthetic/llamafactory_sft_dpo/data/kto_en_demo.json").read_text())
    assert [one(row, "kto")["label"] for row in rows] == [row["label"] for row in rows]


LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=6)
WORDS = st.sampled_from(["user", "gpt", "assistant", "\n\nHuman: x"])
INNER = ("role", "content", "from", "value", "input", "output", "instances", "meta")
OUTER = (
    "instruction", "input", "output", "instances", "prompt", "completion", "chosen", "rejected", "messages", "label",
    "conversations", "system", "history", "chosen_messages", "rejected_messages", "kto_tag", "model", "meta", "seed",
)  # fmt: skip


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER), inner, max_size=4)


JSON = st.recursive(LEAVES | WORDS, nested, max_leaves=12)
RECORDS = st.dictionaries(st.sampled_from(OUTER), JSON, max_size=6)
FORMS = ("alpaca", "self_instruct", "prompt_completion", "preference", "hh", "kto")


@pytest.mark.integration  # takes seconds
@settings(max_examples=examples(300))
@given(st.lists(st.tuples(RECORDS | JSON, st.sampled_from(FORMS)), min_size=1, max_size=5))
def test_no_record_raises_each_gives_a_unit_and_batches_do_not_matter(rows: list[tuple[object, str]]) -> None:
    texts = [(json.dumps(record), form) for record, form in rows]

    def compute(pairs: list[tuple[str, str]]) -> list[Any]:
        payloads, forms = zip(*pairs, strict=True)
        batch = pa.record_batch([pa.array(payloads), pa.array(forms)], schema=CHAT.inputs)
        return CHAT.compute(batch).column("units").to_pylist()

    whole = compute(texts)
    assert all(units for units in whole)
    assert [compute([text])[0] for text in texts] == whole
