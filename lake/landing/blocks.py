"""Blocks of a recognised file: its container's or its format's records, with keys and times read out of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import BinaryIO, cast

from lake.landing.checks import KEPT, Block, too_long
from lake.landing.inputs import InputFile
from lake.landing.recognition import parsed
from lake.landing.streams import Stream
from lake.sources.protocol import MAX_RECORD, Bad, DocumentFormat, Format, RecordFormat, Row, Skip, SpanFormat
from lake.sources.registry import DOCUMENT_FORMATS, RECORD_FORMATS, SPAN_FORMATS
from lake.times import utc_time

GATHER_ROWS, GATHER_BYTES = 1024, 4 << 20  # of one block

Cut = Callable[[Stream], Iterator[Block]]


def read_blocks(file: InputFile, format: Format, cut: Cut | None, stream: Stream) -> Iterator[Block]:
    """Read the records of a recognised file.

    Args:
        file: the file.
        format: what it was recognised as.
        cut: how its records are cut, for JSON formats.
        stream: at its beginning.
    """
    if document := DOCUMENT_FORMATS.get(format.NAME):
        yield _document(file, document, stream)
    elif records := RECORD_FORMATS.get(format.NAME):
        yield from _gathered(records, stream, file.path)
    else:
        assert cut is not None
        spans = SPAN_FORMATS.get(format.NAME)
        for block in cut(stream):
            yield _span_block(block, spans) if spans else block


def _document(file: InputFile, format: DocumentFormat, stream: Stream) -> Block:
    head = stream.peek(1 << 16)[: 1 << 16]
    data = stream.read(MAX_RECORD + 1)
    keys: list[str | None] = [file.natural_key]
    if len(data) > MAX_RECORD:
        size = len(data)
        while piece := stream.read(1 << 20):
            size += len(piece)
        return Block([data[:KEPT]], [1], {0: too_long(size)}, {0: size}, natural_keys=keys)
    block = Block([data], [1], natural_keys=keys, content_types=[format.content_type(head, file.path)])
    if stream.broken is not None:
        block.problems[0] = stream.broken
    return block


def _gathered(format: RecordFormat, stream: Stream, path: str) -> Iterator[Block]:
    """Gather the rows of a format that cuts its own records to blocks."""
    block, positions, size, last = _empty_block(), [], 0, None
    for row in format.read(cast(BinaryIO, stream), path):
        if isinstance(row, Skip):
            block.skipped[row.type] += row.count
            continue
        last = row
        _add(block, row)
        positions.append(row.position)
        size += len(row.payload)
        if size >= GATHER_BYTES or len(positions) >= GATHER_ROWS:
            block.positions = positions
            yield block
            block, positions, size = _empty_block(), [], 0
    # Only at its end does a stream know that it breaks: what the format has left unread is passed.
    if stream.read(1) or (stream.broken is not None and not isinstance(last, Bad)):
        while stream.read(1 << 20):
            pass
        if stream.broken is not None and not isinstance(last, Bad):
            _add(block, Bad(b"", stream.tell(), stream.broken))
            positions.append(stream.tell())
    block.positions = positions
    yield block


def _empty_block() -> Block:
    return Block(natural_keys=[], content_types=[], observed=[])


def _add(block: Block, row: Row | Bad) -> None:
    """Add a row, at most MAX_RECORD long, to a block with all columns."""
    index = len(block.payloads)
    size, reason = len(row.payload), None
    if isinstance(row, Bad):
        size, reason = size if row.size is None else row.size, row.reason
    elif size > MAX_RECORD:
        reason = too_long(size)
    payload = row.payload[:KEPT] if size > MAX_RECORD else row.payload
    if reason is not None:
        block.problems[index] = reason
    if size != len(payload):
        block.sizes[index] = size
    block.payloads.append(payload)
    assert block.natural_keys is not None and block.content_types is not None and block.observed is not None
    block.natural_keys.append(None if isinstance(row, Bad) else row.natural_key)
    block.content_types.append(None if isinstance(row, Bad) else row.content_type)
    block.observed.append(None if isinstance(row, Bad) else row.observed_at)


def _span_block(block: Block, format: SpanFormat) -> Block:
    """Cut records to their spans, and read keys and times out of these."""
    block = _split(block, format)
    keys: list[str | None] = []
    times: list[datetime | None] = []
    for index, payload in enumerate(block.payloads):
        value = parsed(payload) if index not in block.problems else None
        key = format.natural_key(value[0]) if value else None
        if key is None and index not in block.problems:
            block.problems[index] = "a span without ids: trace id and span id were expected"
        # JSON may escape half of a surrogate pair, which no text of the tables can hold.
        keys.append(None if key is None else key.encode("utf-8", "backslashreplace").decode())
        times.append(utc_time(format.observed_at(value[0])) if value else None)
    block.natural_keys, block.observed = keys, times
    return block


def _split(block: Block, format: SpanFormat) -> Block:
    """Cut each record into its spans; one that the format refuses becomes a problem."""
    whole = Block(skipped=block.skipped)
    positions = []
    for index, payload in enumerate(block.payloads):
        reason = block.problems.get(index)
        parts = [payload]
        if reason is None:
            try:
                parts = list(format.split(payload))
            except (ValueError, RecursionError) as error:
                reason = f"cannot be cut into its records: {error}"
        for part in parts:
            if reason is not None:
                whole.problems[len(whole.payloads)] = reason
            if index in block.sizes:
                whole.sizes[len(whole.payloads)] = block.sizes[index]
            whole.payloads.append(part)
            positions.append(block.positions[index])
    whole.positions = positions
    return whole
