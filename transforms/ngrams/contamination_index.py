"""Benchmark items as an index, and their hits in a text.

Three ways to be found, by what a part of an item is made of: its n-grams, its whole sequence of words, its whole text;
see `transforms.ngrams.contamination` for the rule and what the figures mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.ngrams.ngram_index import Dictionary, Finds, Grams, dictionary, grams, no_grams, scan
from transforms.text.words import WORD, Column, Words, column, folded, nfc, shown, words

N = 13
SEQUENCE = 5
MIN_LETTERS = 5
MIN_DIFFERENT = 4
MAX_ITEMS = 64  # per text and suite; how many of them are listed is a row of contracts/reference/thresholds.csv

Ints = npt.NDArray[np.int64]


class Hit(TypedDict):
    """An item's part in a text; see `transforms.ngrams.contamination.HIT`."""

    item_id: str
    part: str
    match: str
    num_ngrams: int
    matched_ngrams: int
    longest_run: int
    first_word: int
    ngrams: list[int]


class TextHits(TypedDict):
    """A suite's items in a text; see `transforms.ngrams.contamination.FOUND`."""

    suite: str
    num_items: int
    ngrams: list[str]
    hits: list[Hit]


@dataclass(frozen=True)
class Found:
    """One find of one entry: `grams` are (first word in the text, text of the n-gram), in that order."""

    entry: int
    match: str
    num_ngrams: int
    longest_run: int
    grams: list[tuple[int, str]]


@dataclass(frozen=True)
class Index:
    """Entries (parts of items) and three ways to them.

    Attributes:
        suites: all suites that have items.
        entries: per entry suite, item_id, part.
        texts: the entries' texts in NFC.
        words: their words.
        grams: numbered n-grams.
        bounds: postings of n-gram i (entries, and which of their n-grams it is) lie at bounds[i]:bounds[i + 1].
        num_grams: per entry, n-grams that count.
        openings: numbered openings of sequences.
        opened: entries by opening.
        exact: entries by folded text.
        exact_codes: hash over all words of these texts: what has another hash is none of them.
    """

    suites: frozenset[str]
    entries: list[tuple[str, str, str]]
    texts: Column
    words: Words
    grams: Dictionary
    bounds: Ints
    posting_entries: Ints
    posting_places: Ints
    num_grams: Ints
    openings: Dictionary
    opened: dict[int, list[int]]
    exact: dict[str, list[int]]
    exact_codes: npt.NDArray[np.uint64]

    def gram_text(self, number: int) -> str:
        """Return the words of an n-gram."""
        start = int(self.grams.starts[number])
        return self.words_text(start, start + int(self.grams.lengths[number]))

    def words_text(self, start: int, stop: int) -> str:
        """Return words of the entries, counted over all of them, as they are compared."""
        spans = zip(self.words.starts[start:stop], self.words.stops[start:stop], strict=True)
        return " ".join(shown(self.texts.data[a:b].tobytes().decode()) for a, b in spans)


def build(items: pa.Table) -> Index:
    """Make the index of items.

    Args:
        items: suite, item_id, part, text (no nulls); the order does not matter.
    """
    items = items.sort_by([("suite", "ascending"), ("item_id", "ascending"), ("part", "ascending")]).combine_chunks()
    entries = list(zip(*(items.column(c).to_pylist() for c in ("suite", "item_id", "part")), strict=True))
    texts = nfc(_one(items.column("text")))
    view = column(texts)
    read = words(view)
    listed = grams(read, N, MIN_LETTERS, MIN_DIFFERENT)
    counted = Grams._make(a[~listed.is_plain] for a in listed)
    num_grams = np.bincount(counted.texts, minlength=len(entries)).astype(np.int64)
    known, numbers = dictionary(counted, read)
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(len(known.starts) + 1))
    places = np.arange(len(numbers)) - (np.cumsum(num_grams) - num_grams)[counted.texts]
    short = [i for i in np.flatnonzero(num_grams == 0).tolist() if entries[i][2] == "question"]
    sequences, openings, opened = _sequences(read, short)
    exact: dict[str, list[int]] = defaultdict(list)
    for entry in sorted(set(short) - sequences):
        exact[folded(texts[entry].as_py())].append(entry)
    exact.pop("", None)
    return Index(
        frozenset(suite for suite, _, _ in entries), entries, view, read, known, bounds.astype(np.int64),
        counted.texts[order], places[order].astype(np.int64), num_grams, openings, opened, dict(exact), _codes(exact),
    )  # fmt: skip


def _one(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if values.num_chunks else pa.array([], values.type)


def _sequences(read: Words, short: list[int]) -> tuple[set[int], Dictionary, dict[int, list[int]]]:
    """Find which short entries are found as sequences; returns them, their openings, and them by opening."""
    listed = grams(read, SEQUENCE, 0, 0)
    first = np.unique(listed.texts, return_index=True)[1]
    chosen = [
        int(i) for i in first if int(listed.texts[i]) in set(short) and _says_something(read, int(listed.texts[i]))
    ]
    picked = Grams._make(a[chosen] for a in listed)
    openings, numbers = dictionary(picked, read)
    opened: dict[int, list[int]] = defaultdict(list)
    for number, entry in zip(numbers.tolist(), picked.texts.tolist(), strict=True):
        opened[number].append(entry)
    return set(picked.texts.tolist()), openings, dict(opened)


def _says_something(read: Words, entry: int) -> bool:
    """Whether an entry is shorter than an n-gram and has enough words with a letter, enough of them different."""
    rows = slice(int(read.offsets[entry]), int(read.offsets[entry + 1]))
    weights, codes, letters = read.weights[rows], read.codes[rows], read.letters[rows]
    different = {int(c): int(w) for c, w in zip(codes[letters], weights[letters], strict=True)}
    return bool(
        weights.sum() < N * WORD
        and weights[letters].sum() >= MIN_LETTERS * WORD
        and sum(different.values()) >= MIN_DIFFERENT * WORD
    )


def _codes(exact: dict[str, list[int]]) -> npt.NDArray[np.uint64]:
    nothing, _ = dictionary(no_grams(), words(column(pa.array([], pa.string()))))
    return scan(column(pa.array(list(exact), pa.string())), N, nothing, SEQUENCE, nothing).whole


def search(index: Index, texts: pa.Array) -> Iterator[tuple[int, list[TextHits]]]:
    """Look for the items of all suites in texts; yields (row, hits by suite) of the rows that have any, in order.

    Args:
        index: from `build`.
        texts: string column; a null is an empty text.
    """
    texts = nfc(texts.fill_null(""))
    view = column(texts)
    finds = scan(view, N, index.grams, SEQUENCE, index.openings)
    found: dict[int, list[Found]] = defaultdict(list)
    for row, words_at, numbers in _by_text(finds.grams):
        found[row] += _by_grams(index, words_at, numbers)
    for row, words_at, numbers in _by_text(finds.openings):
        found[row] += _by_sequences(index, words(Column(view.data, view.offsets[row : row + 2])), words_at, numbers)
    for row in np.flatnonzero(np.isin(finds.whole, index.exact_codes)).tolist():
        text = folded(texts[row].as_py())
        found[row] += [Found(entry, "text", 1, 1, [(0, text)]) for entry in index.exact.get(text, [])]
    for row in sorted(row for row, hits in found.items() if hits):
        yield row, _by_suite(index, found[row])


def _by_text(finds: Finds) -> Iterator[tuple[int, Ints, Ints]]:
    """Yield (row, words, numbers) of each text that has finds."""
    edges = [0, *(np.flatnonzero(np.diff(finds.texts)) + 1).tolist(), len(finds.texts)]
    for start, stop in pairwise(edges):
        if stop > start:
            yield int(finds.texts[start]), finds.words[start:stop], finds.numbers[start:stop]


def _by_grams(index: Index, words_at: Ints, numbers: Ints) -> Iterator[Found]:
    """Yield the entries that n-grams of a text belong to."""
    numbers, first = np.unique(numbers, return_index=True)
    words_at = words_at[first]
    counts = index.bounds[numbers + 1] - index.bounds[numbers]
    gram = np.repeat(np.arange(len(numbers)), counts)
    at = np.arange(len(gram)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(index.bounds[numbers], counts)
    order = np.lexsort((index.posting_places[at], index.posting_entries[at]))
    gram, entries, places = gram[order], index.posting_entries[at][order], index.posting_places[at][order]
    is_new = np.diff(entries, prepend=-1) != 0
    breaks = np.flatnonzero(is_new | (np.diff(places, prepend=-2) != 1))
    runs = np.diff(breaks, append=len(entries))
    starts = np.flatnonzero(is_new)
    longest = np.maximum.reduceat(runs, np.searchsorted(breaks, starts))
    texts: dict[int, str] = {}
    for start, stop, run in zip(starts, [*starts[1:], len(entries)], longest, strict=True):
        own = sorted({int(g) for g in gram[start:stop]}, key=lambda g: int(words_at[g]))
        for g in own:
            texts.setdefault(g, index.gram_text(int(numbers[g])))
        entry = int(entries[start])
        yield Found(entry, "ngrams", stop - start, int(run), [(int(words_at[g]), texts[g]) for g in own])


def _by_sequences(index: Index, text: Words, words_at: Ints, numbers: Ints) -> Iterator[Found]:
    """Yield the entries whose whole sequence of words stands in a text, each once."""
    seen: set[int] = set()
    for at, number in zip(words_at.tolist(), numbers.tolist(), strict=True):
        for entry in index.opened[number]:
            start, stop = int(index.words.offsets[entry]), int(index.words.offsets[entry + 1])
            if entry not in seen and np.array_equal(text.codes[at : at + stop - start], index.words.codes[start:stop]):
                seen.add(entry)
                yield Found(entry, "sequence", 1, 1, [(at, index.words_text(start, stop))])


def _by_suite(index: Index, found: list[Found]) -> list[TextHits]:
    """Sort finds by suite, the items with the greatest share first, and keep the first MAX_ITEMS of each suite."""
    suites: dict[str, list[Found]] = defaultdict(list)
    for one in found:
        suites[index.entries[one.entry][0]].append(one)
    return [_suite_hits(index, suite, suites[suite]) for suite in sorted(suites)]


def _suite_hits(index: Index, suite: str, found: list[Found]) -> TextHits:
    shares: dict[str, float] = defaultdict(float)
    for one in found:
        item = index.entries[one.entry][1]
        shares[item] = max(shares[item], one.num_ngrams / max(1, int(index.num_grams[one.entry])))
    ranks = {item: rank for rank, item in enumerate(sorted(shares, key=lambda item: (-shares[item], item)))}
    listed = sorted({gram for one in found for gram in one.grams})
    texts = list(dict.fromkeys(text for _, text in listed))
    places = {text: place for place, text in enumerate(texts, 1)}
    hits: list[tuple[int, str, Hit]] = []
    for one in found:
        _, item, part = index.entries[one.entry]
        if ranks[item] < MAX_ITEMS:
            hit = Hit(
                item_id=item,
                part=part,
                match=one.match,
                num_ngrams=max(1, int(index.num_grams[one.entry])),
                matched_ngrams=one.num_ngrams,
                longest_run=one.longest_run,
                first_word=one.grams[0][0],
                ngrams=[places[text] for _, text in one.grams],
            )
            hits.append((ranks[item], part, hit))
    hits.sort(key=lambda hit: hit[:2])
    return TextHits(suite=suite, num_items=len(ranks), ngrams=texts, hits=[hit for _, _, hit in hits])
