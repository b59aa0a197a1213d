"""The kernel `contamination` against brute force over tuples of words, and what its rules promise."""

from __future__ import annotations

import zlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import InternalError
from tests.effort import examples
from tests.transforms.slow_words import slow_fold, slow_words
from transforms.ngrams.contamination import INPUTS, ITEMS, RESULTS, compute, prepare
from transforms.ngrams.contamination_index import MAX_ITEMS
from transforms.ngrams.ngram_index import _scan
from transforms.text import words as tokeniser

Item = tuple[str, str, str, str]  # suite, item_id, part, text
QUESTION = "A robe takes 2 bolts of blue fiber and half that much white fiber. How many bolts in total does it take?"


def found(items: list[Item], texts: list[str], suites: list[str] | None = None) -> list[list[dict[str, Any]]]:
    asked = sorted({item[0] for item in items}) if suites is None else suites
    table = pa.Table.from_pylist([dict(zip(ITEMS.names, i, strict=True)) for i in items], schema=ITEMS)
    batch = pa.RecordBatch.from_pylist(
        [{"text_hash": str(i), "text": t, "suites": asked} for i, t in enumerate(texts)], schema=INPUTS
    )
    result = compute(batch, prepare(table))
    assert result.schema.equals(RESULTS)
    assert result.column("text_hash").to_pylist() == [str(i) for i in range(len(texts))]
    assert result.column("scanned").to_pylist() == [asked] * len(texts)
    return result.column("found").to_pylist()


def hits(items: list[Item], text: str) -> list[tuple[str, str, str, int, int]]:
    """(item_id, part, match, matched, of) of all suites."""
    return [
        (h["item_id"], h["part"], h["match"], h["matched_ngrams"], h["num_ngrams"])
        for suite in found(items, [text])[0]
        for h in suite["hits"]
    ]


# --- brute force -------------------------------------------------------------------------------------------------


def closed(words: list[tuple[str, int, bool]], n: int = 13) -> list[tuple[int, tuple[str, ...], bool]]:
    """(first word, n-gram, whether it counts) by summing weights from every word on."""
    out = []
    for start in range(len(words)):
        for stop in range(start + 1, len(words) + 1):
            if sum(w for _, w, _ in words[start:stop]) >= 6 * n:
                out.append((start, tuple(w for w, _, _ in words[start:stop]), says_something(words[start:stop])))
                break
    return out


def says_something(words: list[tuple[str, int, bool]]) -> bool:
    lettered = [(w, weight) for w, weight, letter in words if letter]
    return sum(x for _, x in lettered) >= 30 and sum(x for _, x in set(lettered)) >= 24


def brute(items: list[Item], text: str) -> list[dict[str, Any]]:
    words = slow_words(text)
    names = [w for w, _, _ in words]
    here: dict[tuple[str, ...], int] = {}
    for start, gram, _ in closed(words):
        here.setdefault(gram, start)
    by_suite: dict[str, list[tuple[Fraction, str, str, dict[str, Any], list[tuple[int, str]]]]] = {}
    for suite, item, part, item_text in items:
        own = slow_words(item_text)
        grams = [gram for _, gram, counts in closed(own) if counts]
        total = sum(w for _, w, _ in own)
        matched = [gram in here for gram in grams]
        run = max((len(r) for r in "".join("x" if m else " " for m in matched).split()), default=0)
        how, at = "", []
        if any(matched):
            how = "ngrams"
            at = sorted({(here[g], " ".join(g)) for g in grams if g in here})
        elif not grams and part == "question" and total < 78 and says_something(own):
            sequence = [w for w, _, _ in own]
            places = [i for i in range(len(names)) if names[i : i + len(sequence)] == sequence]
            how, at = ("sequence", [(places[0], " ".join(sequence))]) if places else ("", [])
        elif not grams and part == "question" and slow_fold(item_text) and slow_fold(item_text) == slow_fold(text):
            how, at = "text", [(0, slow_fold(text))]
        if how:
            of, got = max(1, len(grams)), max(1, sum(matched))
            hit = {"item_id": item, "part": part, "match": how, "num_ngrams": of, "matched_ngrams": got}
            hit |= {"longest_run": max(1, run), "first_word": at[0][0]}
            by_suite.setdefault(suite, []).append((Fraction(got, of), item, part, hit, at))
    return [whole(suite, by_suite[suite]) for suite in sorted(by_suite)]


def whole(suite: str, found: list[Any]) -> dict[str, Any]:
    best: dict[str, Fraction] = {}
    for share, item, *_ in found:
        best[item] = max(best.get(item, Fraction(0)), share)
    order = sorted(best, key=lambda item: (-best[item], item))
    grams = list(dict.fromkeys(text for _, text in sorted({g for *_, at in found for g in at})))
    listed = sorted((f for f in found if f[1] in order[:MAX_ITEMS]), key=lambda f: (order.index(f[1]), f[2]))
    rows = [{**f[3], "ngrams": [grams.index(text) + 1 for _, text in f[4]]} for f in listed]
    return {"suite": suite, "num_items": len(best), "ngrams": grams, "hits": rows}


PIECES = [
    "the",
    "Cat",
    "sat",
    "on",
    "a",
    "mat,",
    "7",
    "42",
    "and\n",
    "it's",
    "漢",
    "字かな",
    "ก",
    "ไทย",
    "é",
    "e\u0301",
    "x_y",
]
texts = st.lists(st.sampled_from(PIECES), max_size=45).map(" ".join)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Item], list[str]]:
    """Items, and texts that hold pieces of them."""
    bodies = draw(st.lists(texts, min_size=1, max_size=6))
    items = [(f"s{i % 2}", f"i{i % 4}", "answer" if i >= 4 else "question", b) for i, b in enumerate(bodies)]
    made = []
    for _ in range(draw(st.integers(1, 4))):
        body = draw(st.sampled_from(bodies))
        start = draw(st.integers(0, len(body)))
        made.append(draw(texts) + " " + body[start : start + draw(st.integers(0, 300))] + " " + draw(texts))
    return items, [*made, draw(st.sampled_from(bodies)).replace(" ", "\u3000 ")]


@pytest.mark.integration
@settings(max_examples=examples(120))
@given(worlds())
def test_hits_are_those_of_brute_force(world: tuple[list[Item], list[str]]) -> None:
    items, made = world
    assert found(items, made) == [brute(items, text) for text in made]


@pytest.mark.integration
@settings(max_examples=examples(25))
@given(worlds(), st.randoms(use_true_random=False))
def test_order_of_items_and_size_of_batches_change_nothing(world: Any, random: Any) -> None:
    items, made = world
    shuffled = list(items)
    random.shuffle(shuffled)
    assert [found(shuffled, [text])[0] for text in made] == found(items, made)


@settings(max_examples=examples(25))
@given(worlds())
def test_a_suite_alone_has_the_hits_that_it_has_among_others(world: Any) -> None:
    items, made = world
    for suite in sorted({item[0] for item in items}):
        alone = found([item for item in items if item[0] == suite], made)
        assert alone == [[f for f in row if f["suite"] == suite] for row in found(items, made)]
        assert alone == found(items, made, [suite])


# --- rules -------------------------------------------------------------------------------------------------------


def test_an_item_of_22_words_has_10_ngrams_and_is_found_inside_a_text_however_it_is_set() -> None:
    items = [("s", "i", "question", QUESTION)]
    text = "Solve:\n\n" + QUESTION.upper().replace(" ", "  ").replace("?", " ???") + "\nAnswer: 3"
    assert hits(items, text) == [("i", "question", "ngrams", 10, 10)]
    assert found(items, [text])[0][0]["hits"][0] | {"ngrams": None} == {
        "item_id": "i", "part": "question", "match": "ngrams", "num_ngrams": 10, "matched_ngrams": 10,
        "longest_run": 10, "first_word": 1, "ngrams": None,
    }  # fmt: skip


def test_the_longest_run_ends_at_a_gap() -> None:
    words = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(40)]
    text = " ".join([*words[:17], "other", *words[20:36], "other", *words[1:15]])  # n-grams 0 to 4, 20 to 23, 1 and 2
    (suite,) = found([("s", "i", "question", " ".join(words))], [text])[0]
    (hit,) = suite["hits"]
    assert (hit["num_ngrams"], hit["matched_ngrams"], hit["longest_run"], hit["first_word"]) == (28, 9, 5, 0)
    assert brute([("s", "i", "question", " ".join(words))], text) == [suite]


def test_a_changed_word_takes_the_ngrams_that_hold_it() -> None:
    items = [("s", "i", "question", QUESTION)]
    assert hits(items, QUESTION.replace("robe", "coat")) == [("i", "question", "ngrams", 8, 10)]
    assert hits(items, QUESTION.replace("white", "black")) == []


@pytest.mark.parametrize(
    ("item", "text", "how"),
    [
        ("Which element is most abundant?", "we ask which ELEMENT is - most 'abundant' of all", "sequence"),
        ("Which element is most abundant?", "which element is the most abundant", None),
        # Of several sequences with one beginning, and of one that goes on otherwise, the rest decides.
        ("Which element is most abundant in water?", "which element is most abundant on earth", None),
        ("Which element is most abundant in water?", "say which element is most abundant in water", "sequence"),
        ("Which element is most abundant in water?", "which element is most abundant", None),
        ("What is photosynthesis?", "what is photosynthesis?", None),
        ("What is photosynthesis?", " What  is\tphotosynthesis? ", "text"),
        ("What is photosynthesis?", "Say: What is photosynthesis?", None),
        ("1 + 2 + 3 + 4 + 5 + 6", "1 2 3 4 5 6", None),
        ("1 + 2 + 3 + 4 + 5 + 6", "1 + 2 + 3 + 4 + 5 + 6", "text"),
        ("no no no no no no", "he said no no no no no no", None),
        (" ".join("12345678901234567890"), "so " + " ".join("12345678901234567890"), None),
        (" ".join("12345678901234567890"), " ".join("12345678901234567890"), "text"),
        ("地球上最多的元素是什么", "问：地球上最多的元素是什么？", "sequence"),
    ],
)
def test_short_items_and_runs_of_numbers(item: str, text: str, how: str | None) -> None:
    assert [match for _, _, match, _, _ in hits([("s", "i", "question", item)], text)] == ([how] if how else [])


def test_a_short_answer_is_never_a_hit_and_a_long_one_is() -> None:
    items = [
        ("s", "i", "answer", "18"),
        ("s", "j", "answer", "None of the above is true"),
        ("s", "k", "answer", QUESTION),
    ]
    assert hits(items, "18") == []
    assert hits(items, "None of the above is true") == []
    assert hits(items, QUESTION) == [("k", "answer", "ngrams", 10, 10)]


def test_a_bounded_number_of_items_is_listed_the_greatest_shares_first_and_the_true_number_stands_beside() -> None:
    longer = [("s", f"i{i:02}", "question", f"{QUESTION} Say it in {i} words") for i in range(MAX_ITEMS + 9)]
    (suite,) = found([*longer, ("s", "z", "question", QUESTION)], [QUESTION])[0]
    assert suite["num_items"] == MAX_ITEMS + 10
    assert [h["item_id"] for h in suite["hits"]] == ["z", *(f"i{i:02}" for i in range(MAX_ITEMS - 1))]


@pytest.mark.integration
def test_more_finds_than_there_is_room_for_are_all_found() -> None:
    text = " ".join([QUESTION] * 9000)  # 90,000 n-grams of the item, room for 65,536 at first
    assert hits([("s", "i", "question", QUESTION)], text) == [("i", "question", "ngrams", 10, 10)]
    rows = found([("s", "i", "question", QUESTION)], [QUESTION] * 9000)
    assert all(row == rows[0] != [] for row in rows)


def test_nothing_asked_nothing_there_and_empty_texts() -> None:
    assert found([], ["a text"]) == [[]]
    assert found([("s", "i", "question", QUESTION)], [QUESTION, ""], []) == [[], []]
    assert found([("s", "i", "question", "")], ["", " "]) == [[], []]


def test_a_suite_without_items_is_an_error_and_not_a_text_without_hits() -> None:
    with pytest.raises(InternalError, match="unknown"):
        found([("s", "i", "question", QUESTION)], ["a"], ["unknown"])


def test_a_changed_tokeniser_is_a_changed_scan_in_numbas_cache() -> None:
    # A scan from the cache that inlines the tokeniser of before finds nothing in an index of today's hashes.
    closed_over = dict(zip(_scan.py_func.__code__.co_freevars, _scan.py_func.__closure__, strict=True))
    assert closed_over["tokeniser"].cell_contents == zlib.crc32(Path(tokeniser.__file__).read_bytes())
