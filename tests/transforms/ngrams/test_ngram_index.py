"""The index and the scan at their edges: equal hashes, full tables, long blocks, more matches than room for them."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from transforms.ngrams import ngram_index
from transforms.ngrams.ngram_index import Dictionary, Matches, dictionary, grams, no_grams, scan
from transforms.text.words import Column, Words, column, words

SENTENCE = " ".join(f"w{chr(97 + i)}" for i in range(13))
THAI = "".join(chr(point) for point in range(0x0E01, 0x0E2F))


def read(*texts: str) -> tuple[Column, Words]:
    view = column(pa.array(texts))
    return view, words(view)


def index_of(*texts: str) -> Dictionary:
    _, entry_words = read(*texts)
    return dictionary(grams(entry_words, 13, 0, 0), entry_words)[0]


def matches_in(text: str, index: Dictionary) -> Matches:
    nothing = dictionary(no_grams(), read()[1])[0]
    return scan(read(text)[0], 13, index, 5, nothing).grams


def test_an_equal_hash_is_no_match_unless_every_word_is_equal() -> None:
    index = index_of(SENTENCE)
    assert len(matches_in(SENTENCE, index).texts) == 1
    for place in range(13):
        other = index.words.copy()
        other[place] ^= np.uint64(1)
        assert len(matches_in(SENTENCE, index._replace(words=other)).texts) == 0
    assert len(matches_in(SENTENCE, index._replace(lengths=index.lengths - 1)).texts) == 0


def test_a_full_end_of_the_table_goes_on_at_its_beginning() -> None:
    spread, modulus, shift = int(ngram_index._SPREAD), 1 << 64, 54
    inverse = pow(spread, -1, modulus)
    for number in range(1000):  # an n-gram whose slot lies in the last quarter of the 1,024
        text = f"{SENTENCE} {number}"
        _, entry_words = read(text)
        (code,) = (int(c) for c in grams(entry_words, 13, 0, 0).codes[1:])
        slot = code * spread % modulus >> shift
        if slot >= 768:
            break
    taken = [inverse * (place << shift) % modulus for place in range(slot, 1024)]
    made = ngram_index._table(np.array([*taken, code], dtype=np.uint64))
    assert len(made.keys) == 1024 and made.values[0] == len(taken)
    starts = np.array([0] * len(taken) + [1])
    index = Dictionary(made, starts, np.full(len(starts), 13), entry_words.codes)
    matches = matches_in(text, index)
    assert (matches.words.tolist(), matches.numbers.tolist()) == ([1], [len(taken)])


@pytest.mark.parametrize("unit", ["thai", "words"])
def test_every_ngram_of_a_long_text_is_found_where_it_stands(unit: str) -> None:
    draw = random.Random(11)
    pieces = draw.choices(THAI, k=900) if unit == "thai" else [f"w{draw.randrange(10**6)}" for _ in range(900)]
    text = ("" if unit == "thai" else " ").join(pieces)
    length = 39 if unit == "thai" else 13  # a Thai character weighs a third of a word
    matches = matches_in(text, index_of(text))
    assert matches.words.tolist() == list(range(900 - length + 1))


def test_more_matches_than_there_is_room_for_are_listed_once_each() -> None:
    index = index_of(SENTENCE)
    matches = matches_in(" ".join([SENTENCE] * 70_000), index)
    assert matches.words.tolist() == list(range(0, 13 * 70_000, 13))
    assert set(matches.texts.tolist()) == {0} == set(matches.numbers.tolist())
