"""An index inside a Parquet file: which of its row groups hold some keys, without reading their column.

Keys are hashes, so any file of a source may hold any of them: minima and maxima leave out nothing, and sorted rows
little, for 1,000 keys meet every row group of 10,000 rows. Reading the column costs 0.08 CPU seconds a million rows.
The first 64 bits of the keys, sorted, are searched instead: 0.001 s for 1,000 keys, whatever the number of rows, at 10
bytes a row on disk and 0.1 microseconds a row written. Of a local file, only the pages that the search comes by are
read.

The index lies between the last row group and the footer, where Parquet keeps what is found by an offset alone (its own
Bloom filters, say), so that other readers pass over it; it is written, moved and deleted with its file. It is only a
hint: a hit is looked up in the rows, and an index that is missing or damaged is answered by reading the column.

    prefixes   8 bytes a row, ascending, from an offset that 8 divides; filled up to whole blocks of 64
    checks     8 bytes a block: the inverse of the sum of its prefixes
    groups     2 bytes a row: the row group of each prefix; filled up, too
    trailer    MAGIC, number of rows (8 bytes); then the footer
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

KEYS = ("record_id", "reject_id")  # files whose first column is one of these, what landing looks up, get an index
KEY_LENGTH = 32  # hexadecimal digits of `lake.identity.H`, in lower case
BLOCK = 64  # prefixes under one check; a look-up reads up to two blocks a key
MAGIC = b"LakeKey1"
TRAILER = struct.Struct("<8sQ")
FOOTER = struct.Struct("<I4s")  # how every Parquet file ends: length of the footer, PAR1
MAX_GROUPS = 1 << 16
PADDING = np.uint64(2**64 - 1)

_DIGITS = np.zeros(256, np.uint8)
_DIGITS[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


def prefixes(keys: pa.Array) -> NDArray[np.uint64] | None:
    """Return the first 64 bits of keys.

    Args:
        keys: strings.

    Returns:
        One number a key, the same for the same key, or None where one of them is not 32 bytes long.
    """
    _, offsets, data = keys.buffers()
    if keys.null_count or data is None:
        return None
    ends = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    if not (np.diff(ends) == KEY_LENGTH).all():
        return None
    texts = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].reshape(-1, KEY_LENGTH)
    digits = _DIGITS[texts[:, :16]]
    return (digits[:, ::2] << 4 | digits[:, 1::2]).view(">u8").astype(np.uint64).ravel()


class KeyIndex:
    """The index of one file in the making."""

    def __init__(self) -> None:
        """Begin with no row."""
        self._groups: list[NDArray[np.uint64]] | None = []

    def add(self, keys: pa.Array) -> None:
        """Take the keys of the next row group; one of another length leaves the file without an index."""
        found = prefixes(keys) if len(keys) else np.zeros(0, np.uint64)
        if self._groups is not None and found is not None and len(self._groups) < MAX_GROUPS:
            self._groups.append(found)
        else:
            self._groups = None

    def at(self, offset: int) -> bytes:
        """Return the index as it is written at an offset of its file; empty where there is none."""
        if not self._groups:
            return b""
        found = np.concatenate(self._groups)
        order = np.argsort(found)
        groups = np.repeat(np.arange(len(self._groups), dtype="<u2"), [len(group) for group in self._groups])
        padding = (0, -len(found) % BLOCK)
        found = np.pad(found[order].astype("<u8", copy=False), padding, constant_values=PADDING)
        parts = found, _checks(found.reshape(-1, BLOCK)), np.pad(groups[order], padding)
        return b"".join([bytes(-offset % 8), *(part.tobytes() for part in parts), TRAILER.pack(MAGIC, len(order))])


@dataclass(frozen=True)
class Hits:
    """What an index says of some keys.

    Attributes:
        keys: places of those that it has, among the keys asked for.
        groups: numbers of the row groups that hold these, ascending.
    """

    keys: list[int]
    groups: list[int]


def look_up(read: Callable[[int, int], Any], size: int, keys: NDArray[np.uint64]) -> Hits | None:
    """Ask the index of a Parquet file for some keys.

    Args:
        read: called with a number of bytes and an offset in the file; gives a buffer.
        size: of the file, in bytes.
        keys: prefixes of the keys, of at least one.

    Returns:
        What is to be confirmed by the rows; None where the file has no index, or a damaged one.
    """
    if size < FOOTER.size + TRAILER.size:
        return None
    footer, _ = FOOTER.unpack(read(FOOTER.size, size - FOOTER.size))
    end = size - FOOTER.size - footer - TRAILER.size
    if end < 0:
        return None
    magic, rows = TRAILER.unpack(read(TRAILER.size, end))
    blocks = -(-rows // BLOCK)
    begin = end - blocks * (10 * BLOCK + 8)
    if magic != MAGIC or not rows or begin < 0:
        return None
    data = read(end - begin, begin)
    found = np.frombuffer(data, "<u8", blocks * BLOCK)
    checks = np.frombuffer(data, "<u8", blocks, found.nbytes)
    groups = np.frombuffer(data, "<u2", len(found), found.nbytes + checks.nbytes)
    places = np.searchsorted(found, keys)
    before, after = np.maximum(places - 1, 0), np.minimum(places, len(found) - 1)
    # Whatever is damaged elsewhere, a search ends between two prefixes that it has compared with the key: where both
    # are intact, a key that is not the second of them is absent.
    near = np.unique(np.concatenate([before, after]) // BLOCK)
    if not np.array_equal(_checks(found.reshape(-1, BLOCK)[near]), checks[near]):
        return None
    is_hit = found[after] == keys
    return Hits(np.flatnonzero(is_hit).tolist(), np.unique(groups[after[is_hit]]).tolist())


def _checks(blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the check of each block, one a row; inverted, so that a run of zeros does not check itself."""
    return ~blocks.sum(axis=1, dtype=np.uint64)
