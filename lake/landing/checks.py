"""Records as they are cut: a block of them, each checked once to be UTF-8, JSON and no longer than the limit.

What fails a check stays a record, with a problem: it becomes a reject, its bytes kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lake.landing import json_scan
from lake.sources.protocol import MAX_RECORD

KEPT = 1 << 20  # of a record above the limit, the bytes that its reject keeps
WHITE_SPACE = b" \t\r\n"  # what JSON takes for it (RFC 8259, section 2), fewer than Python's strip()

Bounds = NDArray[np.int64]


@dataclass
class Block:
    """Some records of a file, in order.

    Attributes:
        payloads: their bytes.
        positions: line, element or row numbers from 1, or byte offsets.
        problems: index of a record that cannot be read, to the reason.
        sizes: index of a record whose payload is only its beginning, to its length in bytes.
        skipped: records that do not land, by type.
        natural_keys: per record, or None when no record has one.
        content_types: likewise.
        observed: likewise.
    """

    payloads: list[bytes] = field(default_factory=list)
    positions: Sequence[int] = field(default_factory=list)
    problems: dict[int, str] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    natural_keys: list[str | None] | None = None
    content_types: list[str | None] | None = None
    observed: list[datetime | None] | None = None


def unreadable(payload: bytes, position: int, reason: str, size: int | None = None) -> Block:
    """Return a block of one record that cannot be read.

    Args:
        payload: its bytes, or only the first of them.
        position: line, element or row number from 1, or byte offset.
        reason: what was found and what was expected.
        size: length of the whole record in bytes; default that of the payload.
    """
    length = len(payload) if size is None else size
    if length > MAX_RECORD:
        payload = payload[:KEPT]
    sizes = {0: length} if length != len(payload) else {}
    return Block([payload], [position], {0: reason}, sizes)


def too_long(size: int) -> str:
    """Say that a record is above the limit."""
    return f"the record has {size:,} bytes; at most {MAX_RECORD:,} land"


def checked(data: bytes, starts: Bounds, ends: Bounds, number: int, skip_empty: str | None = None) -> Block:
    """Make a block of records, each checked to be UTF-8 and JSON.

    Args:
        data: the bytes that hold them.
        starts: first byte of each.
        ends: one past the last byte of each.
        number: position of the first.
        skip_empty: name under which records of white space alone are counted instead; None: they are problems.
    """
    payloads = [data[s:e] for s, e in zip(starts.tolist(), ends.tolist(), strict=True)]
    problems = json_scan.find_problems(payloads)
    positions: Sequence[int] = range(number, number + len(payloads))
    skipped: Counter[str] = Counter()
    blank = {i for i in problems if not payloads[i].strip(WHITE_SPACE)} if skip_empty is not None else set()
    if skip_empty is not None and blank:
        skipped[skip_empty] = len(blank)
        kept = [i for i in range(len(payloads)) if i not in blank]
        problems = {new: problems[old] for new, old in enumerate(kept) if old in problems}
        positions, payloads = [number + i for i in kept], [payloads[i] for i in kept]
    block = Block(payloads, positions, skipped=skipped)
    block.problems = {index: f"not JSON: {reason}" for index, reason in problems.items()}
    if payloads:
        _mark_not_utf8(block, data[int(starts[0]) : int(ends[-1])])
    _mark_too_long(block)
    return block


def _mark_not_utf8(block: Block, data: bytes) -> None:
    if is_utf8(data):
        return
    for index, payload in enumerate(block.payloads):
        try:
            payload.decode()
        except UnicodeDecodeError as error:
            block.problems[index] = f"not UTF-8: byte 0x{payload[error.start]:02x} at {error.start}"


def _mark_too_long(block: Block) -> None:
    for index, payload in enumerate(block.payloads):
        if len(payload) > MAX_RECORD:
            block.problems[index] = too_long(len(payload))
            block.sizes[index] = len(payload)
            block.payloads[index] = payload[:KEPT]


def is_utf8(data: bytes) -> bool:
    """Say whether bytes are UTF-8, at the speed of memory."""
    offsets = pa.py_buffer(np.array([0, len(data)], np.int64))
    array: Any = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(data)])
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
