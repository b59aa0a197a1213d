"""The kernel on real files, against brute force over tuples of words and against what is known of the files."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.transforms.slow_words import slow_words
from transforms.ngrams.contamination import INPUTS, ITEMS, compute, prepare

DPO = "synthetic/llamafactory_sft_dpo/data/dpo_en_demo.json"
MT_BENCH = "traces/fastchat/fastchat/llm_judge/data/mt_bench/question.jsonl"
DEMOS = "web/datajuicer_demos/demos/data/auto-prompt-optim/init_infer_dataset.jsonl"

Item = tuple[str, str, str, str]


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def gsm8k(data: Path) -> list[Item]:
    return [
        (split, f"{split} {i}", part, row[part])
        for split in ("train", "test")
        for i, row in enumerate(lines(data / "eval" / "gsm8k" / f"{split}.jsonl"))
        for part in ("question", "answer")
    ]


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def kernel_hits(items: list[Item], texts: list[str]) -> list[dict[tuple[str, str], tuple[int, int]]]:
    """Per text: (item, part) to (n-grams covered, n-grams)."""
    table = pa.Table.from_pylist([dict(zip(ITEMS.names, i, strict=True)) for i in items], schema=ITEMS)
    suites = sorted({item[0] for item in items})
    batch = pa.RecordBatch.from_pylist([{"text_hash": "", "text": t, "suites": suites} for t in texts], schema=INPUTS)
    return [
        {(h["item_id"], h["part"]): (h["matched_ngrams"], h["num_ngrams"]) for f in row for h in f["hits"]}
        for row in compute(batch, prepare(table)).column("found").to_pylist()
    ]


def brute_hits(items: list[Item], texts: list[str]) -> list[dict[tuple[str, str], tuple[int, int]]]:
    """The same for items of 13 words and more in scripts with spaces."""
    index: dict[tuple[str, ...], set[tuple[str, str, int]]] = defaultdict(set)
    sizes: dict[tuple[str, str], int] = {}
    for _, item, part, text in items:
        words = slow_words(text)
        grams = [words[i : i + 13] for i in range(len(words) - 12)]
        counted = [g for g in grams if len(has := [w for w, _, letter in g if letter]) >= 5 and len(set(has)) >= 4]
        sizes[item, part] = len(counted)
        for i, gram in enumerate(counted):
            index[tuple(w for w, _, _ in gram)].add((item, part, i))
    out = []
    for text in texts:
        names = [w for w, _, _ in slow_words(text)]
        covered: dict[tuple[str, str], set[int]] = defaultdict(set)
        for i in range(len(names) - 12):
            for item, part, place in index.get(tuple(names[i : i + 13]), ()):
                covered[item, part].add(place)
        out.append({key: (len(places), sizes[key]) for key, places in covered.items()})
    return out


@pytest.mark.integration
def test_gsm8k_in_preference_rows_questions_and_demo_rows_is_what_brute_force_finds(data: Path) -> None:
    items = gsm8k(data)
    rows = [*json.loads((data / DPO).read_text("utf-8")), *lines(data / MT_BENCH), *lines(data / DEMOS)]
    texts = [text for row in rows for text in strings(row)]
    assert kernel_hits(items, texts) == brute_hits(items, texts)


def whole_items(items: list[Item], rows: list[Any]) -> list[list[str]]:
    """Per row the items whose whole question stands in one of its texts."""
    texts = [(i, text) for i, row in enumerate(rows) for text in strings(row)]
    out: list[set[str]] = [set() for _ in rows]
    for (i, _), found in zip(texts, kernel_hits(items, [text for _, text in texts]), strict=True):
        out[i] |= {item for (item, part), (k, n) in found.items() if part == "question" and k == n}
    return [sorted(found) for found in out]


def test_five_train_questions_stand_in_two_preference_rows(data: Path) -> None:
    found = whole_items(gsm8k(data), json.loads((data / DPO).read_text("utf-8")))
    assert sorted(items for items in found if items) == [
        ["train 1013", "train 350", "train 700", "train 933"],
        ["train 1885"],
    ]


def test_mt_bench_question_115_holds_8_of_the_45_ngrams_of_a_test_item(data: Path) -> None:
    turns = [(row["question_id"], turn) for row in lines(data / MT_BENCH) for turn in row["turns"]]
    found = zip(turns, kernel_hits(gsm8k(data), [turn for _, turn in turns]), strict=True)
    assert [(i, hits) for (i, _), hits in found if hits] == [(115, {("test 326", "question"): (8, 45)})]


def test_twenty_train_questions_stand_whole_in_demo_rows(data: Path) -> None:
    found = {item for row in whole_items(gsm8k(data), lines(data / DEMOS)) for item in row}
    assert len(found) == 20
    assert all(item.startswith("train") for item in found)


EIFFEL, CRUST, SOLVE = "question 101", "question 102", "answer 103"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("clean", [{}] * 5),
        ("contaminated_at_beginning", [{EIFFEL: 1.0}]),
        ("contaminated_at_end", [{EIFFEL: 1.0}]),
        ("contaminated_middle_position", [{EIFFEL: 1.0}]),
        ("contaminated_punctuation_variation", [{EIFFEL: 1.0}]),
        ("contaminated_multiple_in_one", [{EIFFEL: 1.0, CRUST: 1.0, SOLVE: 1.0}]),
        # The edited word, the 2nd and the 23rd of 25, is in five of the 13 n-grams.
        ("contaminated_single_edit", [{EIFFEL: 8 / 13}]),
        ("contaminated_single_insertion", [{EIFFEL: 8 / 13}]),
        ("contaminated_single_deletion", [{EIFFEL: 8 / 13}]),
    ],
)
def test_kinds_of_edits(data: Path, file: str, expected: list[dict[str, float]]) -> None:
    fixtures = data / "eval" / "decon_bundled" / "tests" / "fixtures"
    items = [
        ("decon", f"{part} {row['doc_id']}", part, row[part])
        for row in lines(fixtures / "reference" / "question_answer_reference.jsonl")
        for part in ("question", "answer")
    ]
    found = kernel_hits(items, [row["text"] for row in lines(fixtures / "training" / f"{file}.jsonl")])
    assert [{item: k / n for (item, _), (k, n) in row.items()} for row in found] == expected
