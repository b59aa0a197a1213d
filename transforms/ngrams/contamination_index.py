"""Benchmark items as an index, and their hits in a text.

Three ways to be found, by what a part of an item is made of: its n-grams (13 words as in Brown et al., "Language Models
are Few-Shot Learners", 2020, appendix C), its whole sequence of words, its whole text. See
`transforms.ngrams.contamination` for the rule and what the figures mean.
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

from transforms.ngrams.ngram_index import Dictionary, Grams, Matches, dictionary, grams, no_grams, scan
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
class EntryMatch:
    """An entry that is in a text: `grams` are (first word in the text, text of the n-gram), in that order."""

    entry: int
    how: str
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
        prefixes: numbered prefixes of sequences.
        by_prefix: entries by prefix.
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
    prefixes: Dictionary
    by_prefix: dict[int, list[int]]
    exact: dict[str, list[int]]
    exact_codes: npt.NDArray[np.uint64]

    def _gram_text(self, number: int) -> str:
        """Return the words of an n-gram."""
        start = int(self.grams.starts[number])
        return self._words_text(start, start + int(self.grams.lengths[number]))

    def _words_text(self, start: int, stop: int) -> str:
        """Return words of the entries, counted over all of them, as they are compared."""
        spans = zip(self.words.starts[start:stop], self.words.stops[start:stop], strict=True)
        return " ".join(shown(self.texts.data[a:b].tobytes().decode()) for a, b in spans)


def build(items: pa.Table) -> Index:
    """Make the index of items.

    Args:
        items: columns of `transforms.ngrams.contamination.ITEMS`; the order does not matter.

    Returns:
        The index; equal for equal sets of items.
    """
    items = items.sort_by([("suite", "ascending"), ("item_id", "ascending"), ("part", "ascending")]).combine_chunks()
    entries = list(zip(*(items.column(c).to_pylist() for c in ("suite", "item_id", "part")), strict=True))
    texts = nfc(_as_array(items.column("text")))
    view = column(texts)
    entry_words = words(view)
    listed = grams(entry_words, N, MIN_LETTERS, MIN_DIFFERENT)
    counted = Grams._make(a[~listed.is_plain] for a in listed)
    num_grams = np.bincount(counted.texts, minlength=len(entries)).astype(np.int64)
    numbered, numbers = dictionary(counted, entry_words)
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(len(numbered.starts) + 1))
    # The place of each n-gram in its entry, from 0: places that follow one another are a run of the entry's words.
    places = np.arange(len(numbers)) - (np.cumsum(num_grams) - num_grams)[counted.texts]
    short = [i for i in np.flatnonzero(num_grams == 0).tolist() if entries[i][2] == "question"]
    sequences, prefixes, by_prefix = _sequences(entry_words, short)
    exact: dict[str, list[int]] = defaultdict(list)
    for entry in sorted(set(short) - sequences):
        exact[folded(texts[entry].as_py())].append(entry)
    exact.pop("", None)
    return Index(
        frozenset(suite for suite, _, _ in entries), entries, view, entry_words, numbered, bounds.astype(np.int64),
        counted.texts[order], places[order].astype(np.int64), num_grams, prefixes, by_prefix, dict(exact),
        _codes(exact),
    )  # fmt: skip


def _as_array(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if values.num_chunks else pa.array([], values.type)


def _sequences(entry_words: Words, short: list[int]) -> tuple[set[int], Dictionary, dict[int, list[int]]]:
    """Find which short entries are found as sequences; returns them, their prefixes, and them by prefix."""
    listed = grams(entry_words, SEQUENCE, 0, 0)
    first = np.unique(listed.texts, return_index=True)[1]
    candidates = set(short)
    chosen = [
        int(i) for i in first if (entry := int(listed.texts[i])) in candidates and _says_something(entry_words, entry)
    ]
    picked = Grams._make(a[chosen] for a in listed)
    prefixes, numbers = dictionary(picked, entry_words)
    by_prefix: dict[int, list[int]] = defaultdict(list)
    for number, entry in zip(numbers.tolist(), picked.texts.tolist(), strict=True):
        by_prefix[number].append(entry)
    return set(picked.texts.tolist()), prefixes, dict(by_prefix)


def _says_something(entry_words: Words, entry: int) -> bool:
    """Whether an entry is shorter than an n-gram and has enough words with a letter, enough of them different."""
    rows = slice(int(entry_words.offsets[entry]), int(entry_words.offsets[entry + 1]))
    weights, codes, letters = entry_words.weights[rows], entry_words.codes[rows], entry_words.letters[rows]
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
    """Look for the items of all suites in texts.

    Args:
        index: from `build`.
        texts: string column; a null is an empty text.

    Yields:
        (row, hits by suite) of the rows that have any, in order.
    """
    texts = nfc(texts.fill_null(""))
    view = column(texts)
    matches = scan(view, N, index.grams, SEQUENCE, index.prefixes)
    by_row: dict[int, list[EntryMatch]] = defaultdict(list)
    for row, words_at, numbers in _by_text(matches.grams):
        by_row[row] += _by_grams(index, words_at, numbers)
    for row, words_at, numbers in _by_text(matches.prefixes):
        by_row[row] += _by_sequences(index, words(Column(view.data, view.offsets[row : row + 2])), words_at, numbers)
    # Equal hashes are no proof, so the texts themselves are compared; there are next to none.
    for row in np.flatnonzero(np.isin(matches.whole, index.exact_codes)).tolist():
        text = folded(texts[row].as_py())
        by_row[row] += [EntryMatch(entry, "text", 1, 1, [(0, text)]) for entry in index.exact.get(text, [])]
    for row in sorted(row for row, matches_of_row in by_row.items() if matches_of_row):
        yield row, _by_suite(index, by_row[row])


def _by_text(matches: Matches) -> Iterator[tuple[int, Ints, Ints]]:
    """Yield (row, words, numbers) of each text that has matches."""
    edges = [0, *(np.flatnonzero(np.diff(matches.texts)) + 1).tolist(), len(matches.texts)]
    for start, stop in pairwise(edges):
        if stop > start:
            yield int(matches.texts[start]), matches.words[start:stop], matches.numbers[start:stop]


def _by_grams(index: Index, words_at: Ints, numbers: Ints) -> Iterator[EntryMatch]:
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
            texts.setdefault(g, index._gram_text(int(numbers[g])))
        entry = int(entries[start])
        yield EntryMatch(entry, "ngrams", stop - start, int(run), [(int(words_at[g]), texts[g]) for g in own])


def _by_sequences(index: Index, text: Words, words_at: Ints, numbers: Ints) -> Iterator[EntryMatch]:
    """Yield the entries whose whole sequence of words stands in a text, each once."""
    seen: set[int] = set()
    for at, number in zip(words_at.tolist(), numbers.tolist(), strict=True):
        for entry in index.by_prefix[number]:
            start, stop = int(index.words.offsets[entry]), int(index.words.offsets[entry + 1])
            if entry not in seen and np.array_equal(text.codes[at : at + stop - start], index.words.codes[start:stop]):
                seen.add(entry)
                yield EntryMatch(entry, "sequence", 1, 1, [(at, index._words_text(start, stop))])


def _by_suite(index: Index, matches: list[EntryMatch]) -> list[TextHits]:
    """Sort matches by suite, the items with the greatest share first, and keep the first MAX_ITEMS of each suite."""
    suites: dict[str, list[EntryMatch]] = defaultdict(list)
    for match in matches:
        suites[index.entries[match.entry][0]].append(match)
    return [_suite_hits(index, suite, suites[suite]) for suite in sorted(suites)]


def _suite_hits(index: Index, suite: str, matches: list[EntryMatch]) -> TextHits:
    shares: dict[str, float] = defaultdict(float)
    for match in matches:
        item = index.entries[match.entry][1]
        shares[item] = max(shares[item], match.num_ngrams / max(1, int(index.num_grams[match.entry])))
    ranks = {item: rank for rank, item in enumerate(sorted(shares, key=lambda item: (-shares[item], item)))}
    listed = sorted({gram for match in matches for gram in match.grams})
    texts = list(dict.fromkeys(text for _, text in listed))
    places = {text: place for place, text in enumerate(texts, 1)}
    hits: list[tuple[int, str, Hit]] = []
    for match in matches:
        _, item, part = index.entries[match.entry]
        if ranks[item] < MAX_ITEMS:
            hit = Hit(
                item_id=item,
                part=part,
                match=match.how,
                num_ngrams=max(1, int(index.num_grams[match.entry])),
                matched_ngrams=match.num_ngrams,
                longest_run=match.longest_run,
                first_word=match.grams[0][0],
                ngrams=[places[text] for _, text in match.grams],
            )
            hits.append((ranks[item], part, hit))
    hits.sort(key=lambda hit: hit[:2])
    return TextHits(suite=suite, num_items=len(ranks), ngrams=texts, hits=[hit for _, _, hit in hits])
