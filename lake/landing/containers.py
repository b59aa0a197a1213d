"""Containers: a file's decompressed bytes to blocks of records, with the exact bytes of each.

JSONL, a JSON list, JSON values one after the other, the items below a key. Everything streams: a block is some
megabytes, a list of 10 GB is never in memory. What is cut is checked in `lake.landing.checks`; tables (CSV, Parquet)
are in `lake.landing.tabular`.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator

import numpy as np
from numpy.typing import NDArray

from lake.landing import json_scan
from lake.landing.checks import KEPT, WHITE_SPACE, Block, Bounds, checked, too_long, unreadable
from lake.landing.streams import Stream
from lake.sources.protocol import MAX_RECORD

CHUNK = 4 << 20  # bytes read at a time
ROOM = 65_536  # records of a block at most
LONGEST_KEY = 1 << 20  # bytes; a longer key is taken for none
BOM = b"\xef\xbb\xbf"


def jsonl(stream: Stream) -> Iterator[Block]:
    """Cut lines; a record is a line without its end. Empty lines are skipped, and counted in the positions."""
    skip_bom(stream)
    carry, rest, number = b"", b"", 1
    while True:
        piece = rest or stream.read(CHUNK)
        data, rest = carry + piece, b""
        breaks = np.flatnonzero(np.frombuffer(piece, np.uint8) == 10) + len(carry)
        if not piece and data and stream.broken is None:
            breaks = np.array([len(data)])
        if breaks.size:
            yield from _lines(data, breaks, number)
            number += int(breaks.size)
        carry = data[int(breaks[-1]) + 1 :] if breaks.size else data
        if len(carry) > MAX_RECORD:
            rest, block = _long_line(stream, carry, number)
            carry, number = b"", number + 1
            yield block
        elif not piece:
            break
    if stream.broken is not None:
        yield unreadable(carry, number, stream.broken)


def skip_bom(stream: Stream) -> None:
    """Pass a byte order mark at the beginning."""
    if stream.peek(len(BOM)).startswith(BOM):
        stream.read(len(BOM))


def _lines(data: bytes, breaks: NDArray[np.int64], number: int) -> Iterator[Block]:
    array = np.frombuffer(data, np.uint8)
    starts = np.concatenate([[0], breaks[:-1] + 1]).astype(np.int64)
    ends = breaks.astype(np.int64)
    has_return = (ends > starts) & (array[np.maximum(ends - 1, 0)] == 13)
    ends = ends - has_return
    for low in range(0, len(starts), ROOM):
        part = slice(low, low + ROOM)
        yield checked(data, starts[part], ends[part], number + low, skip_empty="empty line")


def _long_line(stream: Stream, carry: bytes, number: int) -> tuple[bytes, Block]:
    """Pass a line above the limit; return what follows it, and its block."""
    size = len(carry)
    while piece := stream.read(CHUNK):
        end = piece.find(b"\n")
        if end >= 0:
            return piece[end + 1 :], unreadable(carry[:KEPT], number, too_long(size + end), size + end)
        size += len(piece)
    return b"", unreadable(carry[:KEPT], number, too_long(size), size)


class _Cursor:
    """A window on a stream, for reading JSON that may be larger than memory.

    Attributes:
        stream: the file.
        data: the bytes in the window.
        at: how many of them are used.
    """

    def __init__(self, stream: Stream) -> None:
        skip_bom(stream)
        self.stream = stream
        self.data = stream.read(CHUNK)
        self.at = 0

    def more(self) -> bool:
        """Drop what was used and read on; False at the end."""
        piece = self.stream.read(CHUNK)
        self.data = self.data[self.at :] + piece
        self.at = 0
        return bool(piece)

    def next(self) -> bytes:
        """Pass white space and return the next byte, which stays; nothing at the end."""
        while True:
            rest = self.data[self.at : self.at + 4096].lstrip(WHITE_SPACE)
            self.at += min(len(self.data) - self.at, 4096) - len(rest)
            if rest:
                return rest[:1]
            if self.at >= len(self.data) and not self.more():
                return b""

    def key(self) -> bytes | None:
        """Pass a string and the colon after it; return the string's bytes, or None if no key stands here."""
        if self.next() != b'"':
            return None
        end = self.at + 1  # where the closing quote is looked for
        while True:
            quote = self.data.find(b'"', end)
            if quote < 0:
                before = len(self.data) - self.at
                if before > LONGEST_KEY or not self.more():
                    return None
                end = max(before - 1, 1)
                continue
            slashes = quote - len(self.data[self.at : quote].rstrip(b"\\")) - self.at
            end = quote + 1
            if slashes % 2 == 0:  # an odd number escapes the quote
                break
        key = self.data[self.at : end]
        self.at = end
        if self.next() != b":":
            return None
        self.at += 1
        return key

    def rest(self) -> tuple[bytes, int]:
        """Read to the end; return the beginning of what there was, without white space before it, and its length."""
        self.next()
        kept, size = self.data[self.at : self.at + KEPT], len(self.data) - self.at
        while piece := self.stream.read(CHUNK):
            size += len(piece)
            kept += piece[: KEPT - len(kept)]
        return (kept.rstrip(), len(kept.rstrip())) if size <= KEPT else (kept, size)


def json_list(stream: Stream) -> Iterator[Block]:
    """Cut the elements of a list that is the whole file."""
    cursor = _Cursor(stream)
    cursor.next()
    cursor.at += 1
    number, closed = yield from _elements(cursor, "list")
    if closed and cursor.next():
        payload, size = cursor.rest()
        yield unreadable(payload, number, "bytes follow the end of the list", size)
    if stream.broken is not None and closed:
        yield unreadable(b"", number, stream.broken)


def json_values(stream: Stream) -> Iterator[Block]:
    """Cut JSON objects and lists that follow each other, over as many lines as they like; one is the usual case."""
    cursor = _Cursor(stream)
    yield from _elements(cursor, "values")


def json_whole(stream: Stream) -> Iterator[Block]:
    """Take the whole file as one record."""
    skip_bom(stream)
    data = stream.read(MAX_RECORD + 1)
    if len(data) > MAX_RECORD:
        size = len(data)
        while piece := stream.read(CHUNK):
            size += len(piece)
        yield unreadable(data[:KEPT], 1, too_long(size), size)
        return
    data = data.strip(WHITE_SPACE)
    if stream.broken is not None:
        yield unreadable(data, 1, stream.broken)
    elif data:
        yield checked(data, np.array([0]), np.array([len(data)]), 1)


def json_items(stream: Stream, path: str) -> Iterator[Block]:
    """Cut the elements of the list, or the members of the mapping, that lies below a path of keys.

    Args:
        stream: the file.
        path: keys joined by dots; `*` at the end takes the members of the mapping there.
    """
    cursor = _Cursor(stream)
    keys = [k for k in path.split(".") if k]
    members = keys[-1] == "*"
    for key in keys[:-1] if members else keys:
        if not _descend(cursor, key):
            reason = stream.broken or f"no key {key!r} on the way to {path!r}"
            yield unreadable(b"", 1, reason)
            return
    opening = cursor.next()
    cursor.at += 1
    if opening == b"{" or (opening == b"[" and not members):
        number, closed = yield from _elements(cursor, "members" if opening == b"{" else "list")
        if closed:
            while stream.read(CHUNK):  # to the end: a break behind the items is still a break
                pass
        if stream.broken is not None and closed:
            yield unreadable(b"", number, stream.broken)
    else:
        yield unreadable(b"", 1, f"at {path!r} lies neither a list nor a mapping")


def _descend(cursor: _Cursor, wanted: str) -> bool:
    """Go to the value of a key of the mapping that begins here."""
    if cursor.next() != b"{":
        return False
    cursor.at += 1
    while (key := cursor.key()) is not None:
        try:
            if json.loads(key) == wanted:
                return True
        except ValueError:
            return False
        state = np.zeros(4, np.int64)
        start, end, scanned = np.zeros(1, np.int64), np.zeros(1, np.int64), cursor.at
        while True:
            array = np.frombuffer(cursor.data, np.uint8)
            count, _, scanned = json_scan.cut_elements(array, cursor.at, scanned, len(array), state, False, start, end)
            cursor.at = scanned
            if count:
                break
            if not cursor.more():
                return False
            scanned = 0
        if state[json_scan.CLOSED]:
            return False
    return False


def _elements(cursor: _Cursor, kind: str) -> Generator[Block, None, tuple[int, bool]]:
    """Cut elements from here on; return (number of the next element, whether the bracket was closed)."""
    starts, ends = np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64)
    state = np.zeros(4, np.int64)
    number, scanned = 1, cursor.at
    beginning, dropped = b"", 0  # of an element above the limit: what is kept, and how many bytes went by
    while True:
        array = np.frombuffer(cursor.data, np.uint8)
        count, begin, scanned = json_scan.cut_elements(
            array, cursor.at, scanned, len(array), state, kind == "values", starts, ends
        )
        low = 0
        if count and dropped:
            size = dropped + int(ends[0]) - cursor.at
            yield unreadable(beginning, number, too_long(size), size)
            number, low, dropped = number + 1, 1, 0
        closed = bool(state[json_scan.CLOSED])
        if count > low:
            json_scan.trim(array, starts, ends, count)
            if closed and count == low + 1 and number == 1 and starts[low] == ends[low]:
                count = low  # nothing between the brackets
            if count > low:
                yield _cut(cursor.data, starts[low:count], ends[low:count], number, kind)
                number += count - low
        cursor.at = begin
        if closed:
            return number, True
        if count >= ROOM:
            continue
        if len(cursor.data) - cursor.at > MAX_RECORD or dropped:
            beginning = beginning if dropped else cursor.data[cursor.at : cursor.at + KEPT]
            dropped += len(cursor.data) - cursor.at
            cursor.at = len(cursor.data)
        if not cursor.more():
            break
        scanned = 0 if dropped else scanned - begin
    yield from _open_end(cursor, kind, number, dropped, beginning)
    return number + 1, False


def _open_end(cursor: _Cursor, kind: str, number: int, dropped: int, beginning: bytes) -> Iterator[Block]:
    """Say what the end of a file left open."""
    rest = cursor.data[cursor.at :].strip(WHITE_SPACE)
    reason = cursor.stream.broken
    if dropped:
        yield unreadable(beginning, number, too_long(dropped + len(rest)), dropped + len(rest))
    elif reason is not None:
        yield unreadable(rest, number, reason)
    elif kind == "values":
        if rest:
            yield checked(rest, np.array([0]), np.array([len(rest)]), number)
    else:
        block = _cut(rest, np.array([0]), np.array([len(rest)]), number, kind)
        if rest and not block.problems:
            yield block
            number, rest = number + 1, b""
        yield unreadable(
            rest, number, f"the file ends before its {'mapping' if kind == 'members' else 'list'} is closed"
        )


def _cut(data: bytes, starts: Bounds, ends: Bounds, number: int, kind: str) -> Block:
    if kind != "members":
        return checked(data, starts, ends, number)
    parts = [b"{" + data[s:e] + b"}" for s, e in zip(starts.tolist(), ends.tolist(), strict=True)]
    stops = np.cumsum([len(p) for p in parts])
    return checked(b"".join(parts), np.concatenate([[0], stops[:-1]]), stops, number)
