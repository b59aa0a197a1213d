"""An index of the n-grams of texts, and the scan of other texts for them.

An n-gram begins at every word and closes when the weight of its words (`transforms.text.words`) reaches n. It is found
by a rolling 64-bit hash of its words' hashes (Karp and Rabin, "Efficient randomized pattern-matching algorithms", 1987)
and counts only if the words' hashes are equal one by one. A bitmap that stays in the processor's cache answers for the
many n-grams that are in no item: a Bloom filter of one hash (Bloom, 1970).

Texts that are shorter than one n-gram are sequences: they are looked up by their first `prefix` words, and the rest is
compared. Cost: one multiplication a word for each of the two windows; an n-gram of the index takes about 30 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from transforms.text.words import SOURCE, WORD, Column, Words, characters, next_word

Codes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

# Odd, so that multiplying loses no bit; all sums are unsigned and wrap around, which is arithmetic modulo 2^64.
_BASE = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xD6E8FEB86659FD93)
# The ring holds the words of a block of n-grams: fewer than 96 + 40 and the 40 that begin at one word's end.
_RING = np.int64(256)
_MASK = np.int64(255)
_BLOCK = np.int64(96)
_ONE, _SIX, _LOW = np.uint64(1), np.uint64(6), np.uint64(63)


POWERS = np.array([pow(int(_BASE), i, 1 << 64) for i in range(int(_RING))], dtype=np.uint64)
"""Powers of the rolling hash's base, modulo 2^64."""


class Table(NamedTuple):
    """A hash table from 64-bit codes to numbers.

    Attributes:
        bitmap: uint64, bits of codes that may be there.
        keys: uint64, by slot.
        values: int64, by slot; -1 where a slot is free.
        bitmap_shift: uint64, takes a spread code to its bit.
        key_shift: uint64, takes a spread code to its slot.
    """

    bitmap: Codes
    keys: Codes
    values: Ints
    bitmap_shift: np.uint64
    key_shift: np.uint64


def _table(codes: Codes) -> Table:
    """Build a table from different codes (uint64[n]) to their places in the array."""
    # Between a quarter and a half of the slots are taken, so a probe ends after one or two of them.
    bits = max(10, int(2 * len(codes)).bit_length())
    keys, values = np.zeros(1 << bits, np.uint64), np.full(1 << bits, -1, np.int64)
    bitmap_bits = bits + 3  # 16 to 32 bits for a code: at most 1 of 16 codes that are not in the table goes on to it
    bitmap = np.zeros(1 << (bitmap_bits - 6), np.uint64)
    built = Table(bitmap, keys, values, np.uint64(64 - bitmap_bits), np.uint64(64 - bits))
    _insert(codes, *built)
    return built


@numba.njit(nogil=True, cache=True, _nrt=False)
def _insert(codes, bitmap, keys, values, bitmap_shift, key_shift):  # type: ignore[no-untyped-def]
    last = np.uint64(len(keys)) - _ONE
    for number in range(len(codes)):
        spread = codes[number] * _SPREAD
        bit = spread >> bitmap_shift
        bitmap[bit >> _SIX] |= _ONE << (bit & _LOW)
        slot = spread >> key_shift
        while values[slot] >= 0:
            slot = (slot + _ONE) & last
        keys[slot] = codes[number]
        values[slot] = number


class Grams(NamedTuple):
    """The n-grams of texts: rows of arrays, in order of text and first word.

    Attributes:
        texts: int64, number of the text.
        starts: int64, first word, counted over all texts.
        stops: int64, the word after the last.
        codes: uint64, hash.
        is_plain: bool, whether it has too few words with letters, or too few different ones, to say anything.
    """

    texts: Ints
    starts: Ints
    stops: Ints
    codes: Codes
    is_plain: npt.NDArray[np.bool_]


def no_grams() -> Grams:
    """Return an empty list of n-grams."""
    return _room_for_grams(0)


def _room_for_grams(size: int) -> Grams:
    texts, starts, stops = (np.empty(size, np.int64) for _ in range(3))
    return Grams(texts, starts, stops, np.empty(size, np.uint64), np.empty(size, np.bool_))


def grams(words: Words, n: int, min_letters: int, min_different: int) -> Grams:
    """List the n-grams of texts.

    Args:
        words: the texts' words.
        n: weight at which an n-gram closes, in words.
        min_letters: least weight of the words that hold a letter, in words.
        min_different: least weight of the different ones among these, in words.

    Returns:
        Every n-gram of every text, those that say nothing marked as plain.
    """
    size = len(words.codes)
    listed = _room_for_grams(size)
    limits = (n * WORD, min_letters * WORD, min_different * WORD)
    count = _list(words.offsets, words.codes, words.weights, words.letters, POWERS, *limits, *listed)
    return Grams._make(a[:count] for a in listed)


@numba.njit(nogil=True, cache=True, _nrt=False)
def _list(  # type: ignore[no-untyped-def]
    offsets, codes, weights, letters, powers, full, min_letters, min_different, texts, starts, stops, sums, is_plain
):
    count = 0
    for text in range(len(offsets) - 1):
        first = offsets[text]
        weight = np.int64(0)
        total = np.uint64(0)
        for at in range(offsets[text], offsets[text + 1]):
            total = total * _BASE + codes[at]
            weight += weights[at]
            while weight >= full:
                lettered = np.int64(0)
                different = np.int64(0)
                for i in range(first, at + 1):
                    if letters[i]:
                        lettered += weights[i]
                        is_new = True
                        for j in range(first, i):
                            if codes[j] == codes[i] and letters[j]:
                                is_new = False
                                break
                        if is_new:
                            different += weights[i]
                texts[count] = text
                starts[count] = first
                stops[count] = at + 1
                sums[count] = total
                is_plain[count] = lettered < min_letters or different < min_different
                count += 1
                total -= codes[first] * powers[at - first]
                weight -= weights[first]
                first += 1
    return count


class Dictionary(NamedTuple):
    """Different n-grams, numbered, with the words that prove a find.

    Attributes:
        table: from an n-gram's hash to its number.
        starts: int64, by number, its first word in `words`.
        lengths: int64, by number, its words.
        words: uint64, words' hashes.
    """

    table: Table
    starts: Ints
    lengths: Ints
    words: Codes


def dictionary(ngrams: Grams, words: Words) -> tuple[Dictionary, Ints]:
    """Number different n-grams.

    Args:
        ngrams: n n-grams; those of one hash count as one.
        words: the words that they are made of.

    Returns:
        The dictionary, and int64[n], the number of each n-gram.
    """
    codes, first, numbers = np.unique(ngrams.codes, return_index=True, return_inverse=True)
    starts = ngrams.starts[first]
    return Dictionary(_table(codes), starts, ngrams.stops[first] - starts, words.codes), numbers.astype(np.int64)


class Matches(NamedTuple):
    """N-grams of a dictionary in texts: rows of arrays, in order of text and word.

    Attributes:
        texts: int64, number of the text.
        words: int64, number of the n-gram's first word in the text, from 0.
        numbers: int64, the n-gram.
    """

    texts: Ints
    words: Ints
    numbers: Ints


class Scan(NamedTuple):
    """Matches of n-grams and of prefixes, and a hash of all the words of each text (uint64)."""

    grams: Matches
    prefixes: Matches
    whole: Codes


def scan(texts: Column, n: int, ngrams: Dictionary, prefix: int, prefixes: Dictionary) -> Scan:
    """Find the n-grams of a dictionary in texts that are NFC.

    Args:
        texts: column to scan.
        n: weight at which an n-gram closes, in words; 1 to 13.
        ngrams: n-grams to find.
        prefix: weight of a prefix, in words; at most n.
        prefixes: prefixes of sequences.

    Returns:
        Every place, each proved word by word.
    """
    whole = np.zeros(len(texts.offsets) - 1, np.uint64)
    # Buffers are made once: the compiled code allocates nothing, so it needs no reference counts.
    rings = [np.empty(_RING, kind) for kind in (np.uint64, np.int64, *2 * (np.uint64, np.int64, np.int64), np.int64)]
    lines: list[tuple[Matches, Matches]] = []
    begin, room = 0, 1 << 16
    while begin < len(whole):
        out = Matches(*(np.empty(room, np.int64) for _ in range(3)))
        prefix_hits = Matches(*(np.empty(room, np.int64) for _ in range(3)))
        end, n_grams, n_prefix_hits = _scan(
            texts.data, texts.offsets, *characters(), POWERS, begin, n * WORD, prefix * WORD, *rings,
            *ngrams.table, *ngrams[1:], *prefixes.table, *prefixes[1:], *out, *prefix_hits, whole,
        )  # fmt: skip
        lines.append((_cut(out, n_grams), _cut(prefix_hits, n_prefix_hits)))
        room = room if end > begin else 4 * room  # one text has more matches than there was room for
        begin = end
    return Scan(_join([a for a, _ in lines]), _join([b for _, b in lines]), whole)


def _cut(matches: Matches, size: int) -> Matches:
    return Matches(*(column[:size].copy() for column in matches))


def _join(parts: Sequence[Matches]) -> Matches:
    nothing = Matches(*(np.zeros(0, np.int64) for _ in range(3)))
    return Matches(*(np.concatenate(columns) for columns in zip(nothing, *parts, strict=True)))


@numba.njit(nogil=True, cache=True, _nrt=False)
def _look_up(  # type: ignore[no-untyped-def]
    text, codes, firsts, stops, pending, likely, ring,
    bitmap, keys, values, bitmap_shift, key_shift, starts, lengths, words, texts, places, numbers, count,
):  # fmt: skip
    """Note the n-grams of a block that are in a dictionary; returns how many matches there are now, -1: no room.

    The bitmap is asked for a whole block at once, so that the waits for its cache lines overlap.
    """
    candidates = np.int64(0)
    for i in range(pending):
        bit = (codes[i] * _SPREAD) >> bitmap_shift
        likely[candidates] = i
        candidates += np.int64((bitmap[bit >> _SIX] >> (bit & _LOW)) & _ONE)
    last = np.uint64(len(keys)) - _ONE
    for i in likely[:candidates]:
        slot = (codes[i] * _SPREAD) >> key_shift
        while values[slot] >= 0 and keys[slot] != codes[i]:
            slot = (slot + _ONE) & last
        number = values[slot]
        # Different n-grams may share a hash: what counts is proved word by word, from the ring that holds them still.
        equal = number >= 0 and lengths[number] == stops[i] - firsts[i]
        if equal:
            for k in range(lengths[number]):
                if ring[(firsts[i] + k) & _MASK] != words[starts[number] + k]:
                    equal = False
                    break
        if equal:
            if count == len(texts):
                return np.int64(-1)
            texts[count], places[count], numbers[count] = text, firsts[i], number
            count += 1
    return count


def _compiled(tokeniser: int):  # type: ignore[no-untyped-def]
    """Return the scan, compiled anew when the tokeniser that it inlines has changed."""

    @numba.njit(nogil=True, cache=True, _nrt=False)
    def scan_texts(  # type: ignore[no-untyped-def]
        data, offsets, small, folds, powers, begin, full, prefix,
        ring, weights, codes, firsts, stops, codes_2, firsts_2, stops_2, likely,
        bitmap, keys, values, bitmap_shift, key_shift, starts, lengths, words,
        bitmap_2, keys_2, values_2, bitmap_shift_2, key_shift_2, starts_2, lengths_2, words_2,
        texts, places, numbers, texts_2, places_2, numbers_2, whole,
    ):  # fmt: skip
        """Scan texts from `begin` on while there is room; returns (text to go on with, matches, matches of prefixes).

        Names that end in _2 are those of the prefixes. A text for whose matches there is no room is begun again.
        """
        tokeniser  # noqa: B018  # what a function closes over is in the key of numba's cache
        count = count_2 = np.int64(0)
        for text in range(begin, len(offsets) - 1):
            before, before_2 = count, count_2
            pos = np.uint64(offsets[text])
            end = np.uint64(offsets[text + 1])
            at = first = first_2 = weight_in = weight_in_2 = pending = pending_2 = np.int64(0)
            total = total_2 = every = np.uint64(0)
            weight = WORD
            while weight != 0:
                pos, _, _, code, weight, _ = next_word(data, pos, end, small, folds)
                if weight != 0:
                    ring[at & _MASK] = code
                    weights[at & _MASK] = weight
                    at += 1
                    every = every * _BASE + code
                    total = total * _BASE + code
                    weight_in += weight
                    while weight_in >= full:
                        codes[pending], firsts[pending], stops[pending] = total, first, at
                        pending += 1
                        total -= ring[first & _MASK] * powers[at - 1 - first]
                        weight_in -= weights[first & _MASK]
                        first += 1
                    total_2 = total_2 * _BASE + code
                    weight_in_2 += weight
                    while weight_in_2 >= prefix:
                        codes_2[pending_2], firsts_2[pending_2], stops_2[pending_2] = total_2, first_2, at
                        pending_2 += 1
                        total_2 -= ring[first_2 & _MASK] * powers[at - 1 - first_2]
                        weight_in_2 -= weights[first_2 & _MASK]
                        first_2 += 1
                if weight == 0 or pending >= _BLOCK or pending_2 >= _BLOCK:
                    count = _look_up(
                        text, codes, firsts, stops, pending, likely, ring,
                        bitmap, keys, values, bitmap_shift, key_shift, starts, lengths, words,
                        texts, places, numbers, count,
                    )  # fmt: skip
                    count_2 = _look_up(
                        text, codes_2, firsts_2, stops_2, pending_2, likely, ring,
                        bitmap_2, keys_2, values_2, bitmap_shift_2, key_shift_2, starts_2, lengths_2, words_2,
                        texts_2, places_2, numbers_2, count_2,
                    )  # fmt: skip
                    pending = pending_2 = np.int64(0)
                    if count < 0 or count_2 < 0:
                        return text, before, before_2
            whole[text] = every
        return len(offsets) - 1, count, count_2

    return scan_texts


_scan = _compiled(SOURCE)
