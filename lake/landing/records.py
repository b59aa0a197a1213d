"""Records get their identity here, and become rows of the raw tables.

A record file's records form a chain: each id is the hash of the id before it and the record's bytes, so two files share
the ids of their common beginning and no others. Two SHA-256 per record.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import compress
from typing import Any, BinaryIO, cast

import pyarrow as pa

from lake.landing.containers import KEPT, MAX_RECORD, Block, too_long
from lake.landing.inputs import InputFile
from lake.landing.recognition import Reading, parsed
from lake.landing.streams import Stream
from lake.sources import Bad, Format, Skip

GATHER_ROWS, GATHER_BYTES = 1024, 4 << 20


@dataclass
class FileRun:
    """One file on its way, and what became of its records.

    Attributes:
        place: where it lies.
        root: root of its source, for this file.
        path: its path below the root.
        format: what it was recognised as.
        sha256: of the file as it lies, known at its end.
        first_id: id of its first record.
        last_id: id of the latest record.
        is_new: True: the chain is past what is known; False: ids must be looked up; None: not looked at yet.
        state: done, unrecognised, or open.
    """

    place: InputFile
    root: str
    path: str
    format: Format | None = None
    sha256: str = ""
    first_id: str | None = None
    last_id: str | None = None
    is_new: bool | None = None
    read: int = 0
    landed: int = 0
    already: int = 0
    rejected: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    state: str = "open"
    detail: str | None = None

    @property
    def key(self) -> str:
        """The natural key of a document file."""
        return self.place.where if self.place.where.startswith(("http://", "https://")) else self.path


@dataclass
class Identified:
    """A block with the ids of its records.

    Attributes:
        run: the file.
        block: its records.
        ids: per record.
        previous: id of the record before each; None for the first, for spans and documents.
        hashes: hash of each payload.
    """

    run: FileRun
    block: Block
    ids: list[str]
    previous: list[str | None]
    hashes: list[str]


def netstring(text: str | bytes) -> bytes:
    """Return a field of H in its encoded form."""
    data = text.encode() if isinstance(text, str) else text
    return b"%d:%b" % (len(data), data)


def identify(run: FileRun, block: Block, kind: str, source: str) -> Identified:
    """Give the records of a file's next block their ids.

    Args:
        run: the file; its first and last id move on.
        block: the records in order.
        kind: kind that they land as.
        source: their source.
    """
    assert run.format is not None
    sha = hashlib.sha256
    start = netstring("record") + netstring(kind) + netstring(source)
    sized = [b"%d:%b" % (len(p), p) for p in block.payloads]
    hashes = [sha(p).hexdigest()[:32] for p in sized]
    ids: list[str] = []
    previous: list[str | None] = []
    if run.format.identity == "record":
        before = run.last_id
        for payload in sized:
            key = b"32:" + before.encode() if before else b"0:"
            previous.append(before)
            before = sha(b"%b%b%b" % (start, key, payload)).hexdigest()[:32]
            ids.append(before)
    else:
        keys = block.natural_keys or [run.key if run.format.identity == "document" else None] * len(sized)
        ids = [sha(start + netstring(k or "") + p).hexdigest()[:32] for k, p in zip(keys, sized, strict=True)]
        previous = [None] * len(ids)
    if ids:
        run.first_id = run.first_id or ids[0]
        run.last_id = ids[-1]
    return Identified(run, block, ids, previous, hashes)


def blocks(run: FileRun, reading: Reading, stream: Stream) -> Iterator[Block]:
    """Read a recognised file.

    Args:
        run: the file, with its format.
        reading: how it is read.
        stream: at its beginning.
    """
    form = run.format
    assert form is not None
    if form.identity == "document":
        yield _document(run, stream)
    elif reading.cut is not None:
        for block in reading.cut(stream):
            yield refined(block, form)
    else:
        yield from _gathered(form, stream, run.path)


def _document(run: FileRun, stream: Stream) -> Block:
    assert run.format is not None
    head = stream.peek(1 << 16)[: 1 << 16]
    data = stream.read(MAX_RECORD + 1)
    block = Block([data], [1], natural_keys=[run.key], content_types=[run.format.content_type(head, run.path)])
    if len(data) > MAX_RECORD:
        size = len(data)
        while piece := stream.read(1 << 20):
            size += len(piece)
        return Block([data[:KEPT]], [1], {0: too_long(size)}, {0: size}, natural_keys=[run.key])
    if stream.broken is not None:
        block.problems[0] = stream.broken
    return block


def _gathered(form: Format, stream: Stream, path: str) -> Iterator[Block]:
    """Gather the rows of a format that cuts its own records to blocks."""
    block, positions, size, last = _wide(), [], 0, None
    for item in form.read(cast(BinaryIO, stream), path):
        if isinstance(item, Skip):
            block.skipped[item.type] += item.count
            continue
        last = item
        _add(block, item)
        positions.append(item.position)
        size += len(item.payload)
        if size >= GATHER_BYTES or len(positions) >= GATHER_ROWS:
            block.positions = positions
            yield block
            block, positions, size = _wide(), [], 0
    if stream.read(1) or (stream.broken is not None and not isinstance(last, Bad)):
        while stream.read(1 << 20):
            pass
        if stream.broken is not None and not isinstance(last, Bad):
            _add(block, Bad(b"", stream.tell(), stream.broken))
            positions.append(stream.tell())
    block.positions = positions
    yield block


def _wide() -> Block:
    return Block(natural_keys=[], content_types=[], observed=[])


def _add(block: Block, item: Any) -> None:
    index = len(block.payloads)
    is_bad = isinstance(item, Bad)
    size = item.size if is_bad and item.size is not None else len(item.payload)
    reason = item.reason if is_bad else too_long(size) if size > MAX_RECORD else None
    payload = item.payload[:KEPT] if size > MAX_RECORD else item.payload
    if reason is not None:
        block.problems[index] = reason
    if size != len(payload):
        block.sizes[index] = size
    block.payloads.append(payload)
    for column, name in ((block.natural_keys, "natural_key"), (block.content_types, "content_type"),
                         (block.observed, "observed_at")):  # fmt: skip
        assert column is not None
        column.append(getattr(item, name, None))


def refined(block: Block, form: Format) -> Block:
    """Cut records further, and read keys and times out of them, where the format has functions for it."""
    split = form.optional("split")
    if split is not None:
        block = _split(block, split)
    natural_key, observed_at = form.optional("natural_key"), form.optional("observed_at")
    if natural_key is None and observed_at is None:
        return block
    keys: list[str | None] = []
    times: list[datetime | None] = []
    for index, payload in enumerate(block.payloads):
        value = parsed(payload) if index not in block.problems else None
        key = natural_key(value[0]) if natural_key and value else None
        if natural_key and key is None and index not in block.problems:
            block.problems[index] = "a span without ids: trace id and span id were expected"
        # JSON may escape half of a surrogate pair, which no text of the tables can hold.
        keys.append(None if key is None else key.encode("utf-8", "backslashreplace").decode())
        times.append(moment(observed_at(value[0])) if observed_at and value else None)
    block.natural_keys, block.observed = keys, times
    return block


def _split(block: Block, split: Any) -> Block:
    whole = Block(skipped=block.skipped)
    positions = []
    for index, payload in enumerate(block.payloads):
        reason = block.problems.get(index)
        parts = [payload]
        if reason is None:
            try:
                parts = list(split(payload))
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


def moment(text: str | None) -> datetime | None:
    """Read an ISO 8601 time; None where there is none, or none that can be read. Without a zone it is UTC."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):  # year 1 with a zone east of Greenwich is no time in UTC
        return None


@dataclass(frozen=True)
class Facts:
    """What a landing says of all its records: kind, source, licence, provenance options."""

    kind: str
    source: str
    license: str | None
    options: str

    @property
    def together(self) -> str:
        """Licence and options as one JSON object with sorted keys."""
        both = json.loads(self.options) | ({"license": self.license} if self.license else {})
        return json.dumps(both, sort_keys=True, ensure_ascii=False)


def record_rows(
    item: Identified, keep: list[bool], table: pa.Schema, facts: Facts, batch_id: str, now: datetime
) -> pa.RecordBatch:
    """Make the rows of the records of a block that land."""
    block, run = item.block, item.run
    count = sum(keep)
    rows = range(len(item.ids)) if count == len(item.ids) else list(compress(range(len(item.ids)), keep))

    def chosen(values: Any) -> list[Any]:
        return values if isinstance(rows, range) else [values[i] for i in rows]

    string = pa.string()
    constant = {
        "source": facts.source, "format": run.format.name if run.format else None, "path": run.path,
        "license": facts.license, "options": facts.options, "batch_id": batch_id,
    }  # fmt: skip
    columns: dict[str, Any] = {k: pa.repeat(pa.scalar(v, string), count) for k, v in constant.items()}
    columns |= {
        "record_id": pa.array(chosen(item.ids), string),
        "position": pa.array(chosen(block.positions), pa.int64()),
        "previous_id": pa.array(chosen(item.previous), string),
        "natural_key": _optional(block.natural_keys, rows, string),
        "content_type": _optional(block.content_types, rows, string),
        "observed_at": _optional(block.observed, rows, pa.timestamp("us", tz="UTC")),
        "payload": pa.array(chosen(block.payloads), table.field("payload").type),
        "payload_hash": pa.array(chosen(item.hashes), string),
        "landed_at": pa.repeat(pa.scalar(now, pa.timestamp("us", tz="UTC")), count),
    }
    # A project's contract may have columns that landing does not know: `writer_schema` has seen that they are nullable.
    arrays = [columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in table]
    return pa.RecordBatch.from_arrays(arrays, schema=table)


def _optional(values: list[Any] | None, rows: Any, kind: pa.DataType) -> pa.Array:
    return pa.nulls(len(rows), kind) if values is None else pa.array([values[i] for i in rows], kind)


def reject_row(item: Identified, index: int, facts: Facts, batch_id: str, now: datetime) -> dict[str, Any]:
    """Make the row of raw.rejects of a record that cannot be read."""
    payload = item.block.payloads[index]
    return {
        "reject_id": item.ids[index], "kind": facts.kind, "source": facts.source,
        "format": item.run.format.name if item.run.format else "", "path": item.run.path,
        "position": item.block.positions[index], "previous_id": item.previous[index],
        "reason": item.block.problems[index], "payload": payload,
        "payload_bytes": item.block.sizes.get(index, len(payload)), "batch_id": batch_id, "landed_at": now,
    }  # fmt: skip


def landing_row(run: FileRun, facts: Facts, batch_id: str, now: datetime) -> dict[str, Any]:
    """Make the row of raw.landings of a file."""
    return {
        "batch_id": batch_id, "kind": facts.kind, "source": facts.source, "path": run.path, "sha256": run.sha256,
        "root": run.root, "format": run.format.name if run.format else None, "options": facts.together,
        "first_id": run.first_id, "last_id": run.last_id, "read": run.read, "landed": run.landed,
        "already": run.already, "rejected": run.rejected, "skipped": json.dumps(dict(sorted(run.skipped.items()))),
        "bytes": run.bytes, "state": run.state, "detail": run.detail, "landed_at": now,
    }  # fmt: skip
