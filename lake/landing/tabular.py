"""CSV and Parquet rows as canonical JSON: keys in the columns' order, no spaces, no value guessed.

A CSV cell stays the text that it is. A Parquet value becomes JSON where JSON has it; bytes become base64, times ISO
8601, decimals text, NaN and infinities their names as text.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lake.json_values import exact_number, json_value
from lake.landing.checks import KEPT, Block, too_long, unreadable
from lake.landing.containers import BOM, skip_bom
from lake.landing.streams import Stream
from lake.sources.protocol import MAX_RECORD

ROWS = 2048  # rows of a block, fewer where they are long
BLOCK_BYTES = 8 << 20
DELIMITERS = ",\t;|"


def _canonical(row: Any) -> bytes:
    """Return a row as JSON: one value, one text."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def csv_shape(head: bytes, path: str) -> tuple[str, list[str]] | None:
    """Say what delimiter and columns a text has if it is a table with a header.

    Args:
        head: the first bytes, decompressed; may end anywhere.
        path: a name in .csv or .tsv is believed; without it two columns and two even rows are asked for.

    Returns:
        (delimiter, column names), or None.
    """
    is_named = path.lower().endswith((".csv", ".tsv"))
    text = head.removeprefix(BOM).decode("utf-8", "surrogateescape")
    if "\0" in text or not text.strip():
        return None
    lines = text.splitlines(keepends=True)
    complete = "".join(lines[:-1] if len(lines) > 1 and len(head) >= 1 << 16 else lines)
    best: tuple[int, str, list[str]] | None = None
    for delimiter in "\t" if path.lower().endswith(".tsv") else DELIMITERS:
        rows = _rows_of(complete, delimiter, 20)
        if not rows or len(set(rows[0])) != len(rows[0]) or not all(c.strip() for c in rows[0]):
            continue
        width = len(rows[0])
        even = sum(len(r) == width for r in rows)
        if (is_named or (width > 1 and len(rows) > 1 and even == len(rows))) and (not best or width * even > best[0]):
            best = (width * even, delimiter, rows[0])
    return (best[1], best[2]) if best else None


def _rows_of(text: str, delimiter: str, count: int) -> list[list[str]]:
    rows = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                rows.append(row)
            if len(rows) >= count:
                break
    except csv.Error:
        pass
    return rows


def csv_rows(stream: Stream, delimiter: str) -> Iterator[Block]:
    """Read a CSV table with a header; each row is one JSON object of texts.

    Args:
        stream: the file at its beginning.
        delimiter: one character.
    """
    block, number, header, size = Block(), 1, None, 0
    positions: list[int] = []
    for row, problem, raw in _cells(stream, delimiter):
        if problem is not None:
            block.problems[len(block.payloads)] = problem
            _add(block, raw)
        elif not row:
            block.skipped["empty line"] += 1
            continue
        elif header is None:
            header = row
            continue
        else:
            _add_row(block, row, header)
        positions.append(number)
        number += 1
        size += len(block.payloads[-1])
        if len(positions) >= ROWS or size >= BLOCK_BYTES:
            block.positions = positions
            yield block
            block, positions, size = Block(), [], 0
    if stream.broken is not None and stream.broken not in block.problems.values():
        block.problems[len(block.payloads)] = stream.broken
        block.payloads.append(b"")
        positions.append(number)
    block.positions = positions
    yield block


def _cells(stream: Stream, delimiter: str) -> Iterator[tuple[list[str], str | None, bytes]]:
    """Yield the rows of a table; of what is no row, or only the beginning of one, why and its bytes."""
    csv.field_size_limit(MAX_RECORD)
    skip_bom(stream)
    # BufferedReader, since TextIOWrapper wants read1; surrogateescape, so that bytes that are no UTF-8 can be kept.
    text = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8", errors="surrogateescape", newline="")
    lines: list[str] = []  # of the row at hand
    reader = csv.reader(_noted(text, lines), delimiter=delimiter, strict=True)
    try:
        while True:
            row: list[str] = []
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                problem: str | None = f"no CSV row: {error}"
            else:
                problem = None if lines[-1].endswith(("\n", "\r")) else stream.broken
            yield row, problem, "".join(lines).encode("utf-8", "surrogateescape") if problem else b""
            lines.clear()
    finally:
        text.detach().detach()  # else they close the stream, which is to be hashed to its end


def _noted(text: Iterable[str], lines: list[str]) -> Iterator[str]:
    for line in text:
        lines.append(line)
        yield line


def _add_row(block: Block, row: list[str], header: list[str]) -> None:
    """Add a row, or what is wrong with it."""
    index = len(block.payloads)
    if len(row) != len(header):
        block.problems[index] = f"the row has {len(row)} cells; the header has {len(header)}"
    value: Any = row if index in block.problems else dict(zip(header, row, strict=True))
    try:
        payload = _canonical(value)
    except UnicodeEncodeError:
        payload = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogateescape")
        block.problems[index] = "not UTF-8"
    _add(block, payload)


def _add(block: Block, payload: bytes) -> None:
    if len(payload) > MAX_RECORD:
        index = len(block.payloads)
        block.problems[index], block.sizes[index] = too_long(len(payload)), len(payload)
        payload = payload[:KEPT]
    block.payloads.append(payload)


def parquet_rows(stream: Stream) -> Iterator[Block]:
    """Read the rows of a Parquet file; it is copied to a temporary file, since its index lies at its end."""
    copy = stream.spool()
    if stream.broken is not None:
        yield unreadable(b"", 1, stream.broken)
        return
    number = 1
    try:
        file = pq.ParquetFile(copy)
        for batch in file.iter_batches(batch_size=_rows_a_block(file.metadata)):
            block = Block([], range(number, number + batch.num_rows))
            for row in batch.to_pylist():
                _add(block, _canonical(json_value(row, exact_number)))
            number += batch.num_rows
            yield block
    except (pa.ArrowException, OSError) as error:
        yield unreadable(b"", number, f"the Parquet file cannot be read from row {number} on: {error}")


def _rows_a_block(metadata: pq.FileMetaData) -> int:
    """Return how many rows of a Parquet file make a block of bounded size."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    longest = max((g.total_byte_size // g.num_rows for g in groups if g.num_rows), default=1)
    return max(1, min(ROWS, BLOCK_BYTES // max(longest, 1)))
