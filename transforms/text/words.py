"""The words of a text, read straight from its UTF-8 bytes by one function that every kernel inlines.

A word is a run of letters, marks and decimal digits of the NFC text in simple lower case; everything else splits,
`_` and apostrophes too. Format characters and variation selectors are skipped as if they were not there. Scripts
that are written without spaces give one word a character, of less weight: half a word for Han and kana, a third for
Thai, Lao, Khmer and Myanmar. Weights are counted in sixths, so that all sums are whole numbers.

A word is its 64-bit hash: nothing is copied and no string is made. The character table comes from `unicodedata` at
first use (0.3 s), so its Unicode version enters a kernel's fingerprint. English text runs at 140 MB/s on one core
(tests/bench/bench_contamination.py).

Text must be NFC (Unicode Standard Annex 15). `nfc` looks for code points that NFC might change and normalises only rows
that hold one: 1,514 MB/s on 37 MB of English documents and chats, one core, where `unicodedata` takes 569 MB/s, with
its quick check 550, and Arrow's `utf8_normalize` 137. On the Universal Declaration in 162 languages, where most rows
hold one, it is 128 against 105, 87 and 71.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
import sys
import unicodedata
import zlib
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes: TypeAlias = npt.NDArray[np.uint8]
Offsets: TypeAlias = npt.NDArray[np.int64]

WORD = 6
"""Weight of an ordinary word, in sixths."""
HALF, THIRD = 3, 2

SOURCE = zlib.crc32(inspect.getsource(sys.modules[__name__]).encode())
"""A checksum of this module, for compiled functions elsewhere that inline `next_word`.

numba's cache holds a function until its own file changes, whatever becomes of those that it inlines: without the
checksum a scan would look with the old hashes in an index of new ones, and find nothing.
"""

_SPLIT, _SKIP, _MARK, _DIGIT, _LETTER, _HALF_LETTER, _THIRD_LETTER, _THIRD_MARK = range(8)
_HALF_NAMES = ("CJK ", "IDEOGRAPHIC ", "HIRAGANA ", "KATAKANA", "HALFWIDTH KATAKANA", "HENTAIGANA ")
_THIRD_NAMES = ("THAI ", "LAO ", "KHMER ", "MYANMAR ")
# Modifier letters by category, apostrophes by use: Ukrainian writes U+02BC, U+2019 and U+0027 for one another.
_APOSTROPHES = (0x02BC, 0x02EE)
# Marks without a form of their own: a heart with or without U+FE0F is one heart.
_SELECTORS = (0x034F, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
_HAN_ZERO = 0x3007  # a letter number by category, a digit of Han by use

_UNSAFE = np.uint32(1 << 28)
_CLASS = np.uint32(24)
_KIND = np.uint32(15)
_CHARACTER = np.uint32(0x1FFFFF)

# FNV-1a over code points (Fowler, Noll, Vo), of which the last step mixes the high bits into the low ones.
# All of it is unsigned, so that products wrap around and a shift brings in zeros.
_SEED = np.uint64(0x9E3779B97F4A7C15)
_PRIME = np.uint64(0x100000001B3)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_MIX_SHIFT = np.uint64(32)
_ONE, _TWO, _THREE, _FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_TAIL = np.uint32(0x3F)

WHITE_SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""Unicode's White_Space, as the inside of a character class; the macro `folded` has the same."""
_SPACES = re.compile(f"[{WHITE_SPACE}]+")


class Characters(NamedTuple):
    """What the tokeniser knows of characters.

    Attributes:
        ascii: uint8[256], the lower-case byte of an ASCII letter or digit, else 0.
        folds: uint32[0x110000], by code point: lower-case code point, class << 24, and a bit where NFC may change it.
    """

    ascii: npt.NDArray[np.uint8]
    folds: npt.NDArray[np.uint32]


@functools.cache
def characters() -> Characters:
    """Build the table of characters from `unicodedata`."""
    folds = np.arange(sys.maxunicode + 1, dtype=np.uint32)
    for point in _assigned():
        character = chr(point)
        kind = _kind(point, character)
        if kind != _SPLIT:
            folds[point] = ord(_lower(character)) | (kind << int(_CLASS))
    for point in _unsafe_points():
        folds[point] |= _UNSAFE
    small = np.zeros(256, dtype=np.uint8)
    for point in range(128):
        if folds[point] >> _CLASS:
            small[point] = folds[point] & _CHARACTER
    return Characters(small, folds)


def _lower(character: str) -> str:
    """Return the simple lower case of one character: always one character (of `İ`, an `i`)."""
    return character.lower()[0]


def _kind(point: int, character: str) -> int:
    category = unicodedata.category(character)
    if category == "Cf" or point in _SELECTORS:
        return _SKIP
    if (category[0] not in "LM" and category != "Nd" and point != _HAN_ZERO) or point in _APOSTROPHES:
        return _SPLIT
    name = unicodedata.name(character, "") if point > 0xE00 else ""
    if name.startswith(_HALF_NAMES) and category[0] != "M":
        return _HALF_LETTER
    if name.startswith(_THIRD_NAMES):
        return _THIRD_LETTER if category[0] == "L" else _THIRD_MARK
    return {"L": _LETTER, "M": _MARK}.get(category[0], _DIGIT)


def _assigned() -> Iterator[int]:
    """Code points of the planes that hold characters; surrogates are none, private use has no properties."""
    return itertools.chain(range(0xD800), range(0xF900, 0x40000), range(0xE0000, 0xE1000))


def _unsafe_points() -> set[int]:
    """Code points that NFC may change, reorder or join to the one before; a few too many, never too few."""
    points = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # Hangul vowels and finals
    for point in _assigned():
        character = chr(point)
        if unicodedata.combining(character):
            points.add(point)
        parts = unicodedata.decomposition(character)
        if parts and parts[0] != "<":
            points.update(int(part, 16) for part in parts.split()[1:])
            if unicodedata.normalize("NFC", character) != character:
                points.add(point)
    return {point for point in points if point >= 0x300}


@numba.njit(inline="always")
def _decode(data, pos):  # type: ignore[no-untyped-def]
    """Return (code point, number of bytes) of the non-ASCII character at `pos`."""
    byte = np.uint32(data[pos])
    second = np.uint32(data[pos + _ONE]) & _TAIL
    if byte < 0xE0:
        return ((byte & np.uint32(0x1F)) << np.uint32(6)) | second, _TWO
    third = np.uint32(data[pos + _TWO]) & _TAIL
    if byte < 0xF0:
        return ((byte & np.uint32(0x0F)) << np.uint32(12)) | (second << np.uint32(6)) | third, _THREE
    fourth = np.uint32(data[pos + _THREE]) & _TAIL
    return (
        ((byte & np.uint32(0x07)) << np.uint32(18)) | (second << np.uint32(12)) | (third << np.uint32(6)) | fourth
    ), _FOUR


@numba.njit(inline="always")
def next_word(data, pos, end, small, folds):  # type: ignore[no-untyped-def]
    """Read one word. Positions are unsigned: numba adds a test for negative ones to each signed index.

    Args:
        data: uint8 array, UTF-8 in NFC.
        pos: uint64, where to begin: the text's start, or what the last call returned.
        end: uint64, where the text ends.
        small: `Characters.ascii`.
        folds: `Characters.folds`.

    Returns:
        (pos, start, stop, hash, weight, letter): where to go on, the word's bytes, its uint64 hash, its weight in
        sixths (0: there is no further word), and whether it holds a letter.
    """
    start = pos
    stop = pos
    code = _SEED
    weight = 0
    letter = False
    while pos < end:
        low = small[data[pos]]
        if low != 0:
            if weight == 0:
                start = pos
                weight = WORD
            elif weight != WORD:
                break
            while low != 0:
                code = (code ^ np.uint64(low)) * _PRIME
                letter |= low >= 97
                pos += _ONE
                if pos == end:
                    break
                low = small[data[pos]]
            stop = pos
            # An ASCII byte that is no letter ends the word; any other may be a mark or a letter that belongs to it.
            if pos < end and data[pos] < 0x80:
                pos += _ONE
                break
            continue
        if data[pos] < 0x80:
            pos += _ONE
            if weight != 0:
                break
            continue
        point, size = _decode(data, pos)
        fold = folds[point]
        kind = (fold >> _CLASS) & _KIND
        if kind == _SKIP:
            pos += size
            continue
        if kind == _SPLIT:
            pos += size
            if weight != 0:
                break
            continue
        if kind >= _HALF_LETTER:
            if weight != 0:
                break
            start = pos
            weight = HALF if kind == _HALF_LETTER else THIRD
            letter = kind != _THIRD_MARK
        elif weight == 0:
            start = pos
            weight = WORD
        elif weight != WORD and kind != _MARK:
            break
        letter |= kind == _LETTER
        code = (code ^ np.uint64(fold & _CHARACTER)) * _PRIME
        pos += size
        stop = pos
    code = (code ^ (code >> _MIX_SHIFT)) * _MIX
    return pos, start, stop, code, weight, letter


@numba.njit(nogil=True, cache=True, _nrt=False)
def _unsafe(data, offsets, folds, is_unsafe):  # type: ignore[no-untyped-def]
    """Set is_unsafe[i] where row i holds a code point that NFC may change."""
    for row in range(len(offsets) - 1):
        pos = np.uint64(offsets[row])
        end = np.uint64(offsets[row + 1])
        bits = np.uint8(0)
        # A loop without a branch, which compiles to vector instructions, for the many rows that are ASCII.
        for at in range(offsets[row], offsets[row + 1]):
            bits |= data[at]
        if bits < 0x80:
            continue
        while pos < end:
            if data[pos] < 0x80:
                pos += _ONE
                continue
            point, size = _decode(data, pos)
            if folds[point] & _UNSAFE:
                is_unsafe[row] = True
                break
            pos += size


class Column(NamedTuple):
    """A column of texts: row i is data[offsets[i]:offsets[i + 1]]."""

    data: Bytes
    offsets: Offsets


def column(texts: pa.Array) -> Column:
    """View an Arrow string column, nulls as empty texts, without a copy of its bytes."""
    if texts.null_count:
        texts = texts.fill_null("")
    texts = texts.cast(pa.large_string())  # offsets of 64 bits, for a batch may hold more than 2 GiB
    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return Column(np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8), places)


def nfc(texts: pa.Array) -> pa.Array:
    """Return the texts in NFC; rows that cannot change are only looked at.

    Args:
        texts: string column without nulls, n rows.

    Returns:
        n rows; the same array where nothing needed work.
    """
    view = column(texts)
    is_unsafe = np.zeros(len(texts), dtype=np.bool_)
    _unsafe(view.data, view.offsets, characters().folds, is_unsafe)
    rows = np.flatnonzero(is_unsafe)
    changed = {
        int(row): normal
        for row in rows
        if (normal := unicodedata.normalize("NFC", text := texts[int(row)].as_py())) != text
    }
    if not changed:
        return texts
    mask = np.zeros(len(texts), dtype=np.bool_)
    mask[list(changed)] = True
    return pa.compute.replace_with_mask(texts, pa.array(mask), pa.array(list(changed.values()), texts.type))


def folded(text: str) -> str:
    """Return a text in NFC with runs of white space as one space and none at the ends: what exact equality compares."""
    return _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip(" ")


def shown(text: str) -> str:
    """Return a word as it is compared: simple lower case, without what is skipped."""
    return "".join(map(_shown, text))


@functools.cache
def _shown(character: str) -> str:
    return "" if _kind(ord(character), character) == _SKIP else _lower(character)


class Words(NamedTuple):
    """The words of a column of texts, all in one row of arrays; those of text i lie at offsets[i]:offsets[i + 1].

    Attributes:
        offsets: int64[n + 1].
        codes: uint64, the words' hashes.
        weights: int64, in sixths.
        letters: bool, whether a word holds a letter.
        starts: int64, first byte of a word in the column's data.
        stops: int64, the byte after it.
    """

    offsets: Offsets
    codes: npt.NDArray[np.uint64]
    weights: npt.NDArray[np.int64]
    letters: npt.NDArray[np.bool_]
    starts: Offsets
    stops: Offsets


def words(texts: Column) -> Words:
    """Read the words of texts that are NFC; for indexes and for the few rows that need every word at hand."""
    table = characters()
    counts = np.zeros(len(texts.offsets), dtype=np.int64)
    _count(texts.data, texts.offsets, *table, counts)
    offsets = np.cumsum(counts)
    n = int(offsets[-1])
    read = Words(
        offsets, np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.bool_), np.empty(n, np.int64),
        np.empty(n, np.int64),
    )  # fmt: skip
    _fill(texts.data, texts.offsets, *table, *read[1:])
    return read


# `_nrt=False`, here and above: else each call of an inlined function counts references of its arrays, at half speed.
@numba.njit(nogil=True, cache=True, _nrt=False)
def _count(data, offsets, small, folds, counts):  # type: ignore[no-untyped-def]
    for row in range(len(offsets) - 1):
        pos = np.uint64(offsets[row])
        end = np.uint64(offsets[row + 1])
        while True:
            pos, _, _, _, weight, _ = next_word(data, pos, end, small, folds)
            if weight == 0:
                break
            counts[row + 1] += 1


@numba.njit(nogil=True, cache=True, _nrt=False)
def _fill(data, offsets, small, folds, codes, weights, letters, starts, stops):  # type: ignore[no-untyped-def]
    at = 0
    for row in range(len(offsets) - 1):
        pos = np.uint64(offsets[row])
        end = np.uint64(offsets[row + 1])
        while True:
            pos, start, stop, code, weight, letter = next_word(data, pos, end, small, folds)
            if weight == 0:
                break
            codes[at] = code
            weights[at] = weight
            letters[at] = letter
            starts[at] = start
            stops[at] = stop
            at += 1
