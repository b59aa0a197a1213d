"""Records get their identity here, and become rows of the raw tables.

A record file's records form a chain: each id is the hash of the id before it and the record's bytes, so two files share
the ids of their common beginning and no others. Two SHA-256 per record.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from itertools import compress
from typing import Any

import pyarrow as pa

from lake.landing.checks import Block
from lake.landing.inputs import InputFile
from lake.sources.protocol import Format
from lake.sources.registry import identity_of


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


@dataclass
class ChainState:
    """Where the chain of a file's ids stands, and what else is known of it so far; the reading thread's own.

    Attributes:
        first_id: id of its first record.
        last_id: id of the latest record.
        format: what it was recognised as.
        sha256: of the file as it lies.
        bytes: of the file as it lies.
    """

    first_id: str | None = None
    last_id: str | None = None
    format: Format | None = None
    sha256: str = ""
    bytes: int = 0


@dataclass(frozen=True)
class Identified:
    """A block with the ids of its records.

    Attributes:
        file: the file.
        format: what it was recognised as.
        block: its records; whoever holds this has it alone.
        ids: per record.
        previous: id of the record before each; None for the first, for spans and documents.
        hashes: hash of each payload.
        bytes: of all payloads.
    """

    file: InputFile
    format: Format
    block: Block
    ids: list[str]
    previous: list[str | None]
    hashes: list[str]
    bytes: int

    @property
    def is_chained(self) -> bool:
        """Whether each id hashes the id before it, so that every id behind a new one is new."""
        return identity_of(self.format) == "record"


def _field(text: str) -> bytes:
    """Return a field as `lake.identity.H` feeds it to the hash."""
    data = text.encode()
    return b"%d:%b" % (len(data), data)


def identify(chain: ChainState, file: InputFile, block: Block, facts: Facts) -> Identified:
    """Give the records of a file's next block their ids.

    Args:
        chain: the file's chain, with its format; its first and last id move on.
        file: the file.
        block: the records in order.
        facts: kind and source that they land as.
    """
    assert chain.format is not None
    # `lake.identity.H` spelled out: what all ids share is encoded once, and each payload once for its two hashes.
    sha = hashlib.sha256
    start = _field("record") + _field(facts.kind) + _field(facts.source)
    payloads = [b"%d:%b" % (len(p), p) for p in block.payloads]
    hashes = [sha(p).hexdigest()[:32] for p in payloads]
    ids: list[str] = []
    previous: list[str | None] = []
    identity = identity_of(chain.format)
    if identity == "record":
        before = chain.last_id
        for payload in payloads:
            key = b"32:" + before.encode() if before else b"0:"
            previous.append(before)
            before = sha(b"%b%b%b" % (start, key, payload)).hexdigest()[:32]
            ids.append(before)
    else:
        default = file.natural_key if identity == "document" else None
        keys = block.natural_keys or [default] * len(payloads)
        ids = [sha(start + _field(k or "") + p).hexdigest()[:32] for k, p in zip(keys, payloads, strict=True)]
        previous = [None] * len(ids)
    if ids:
        chain.first_id = chain.first_id or ids[0]
        chain.last_id = ids[-1]
    size = sum(map(len, block.payloads))
    return Identified(file, chain.format, block, ids, previous, hashes, size)


def record_rows(
    item: Identified, keep: list[bool], table: pa.Schema, facts: Facts, batch_id: str, now: datetime
) -> pa.RecordBatch:
    """Make the rows of the records of a block that land.

    Args:
        item: the block.
        keep: per record, whether it lands.
        table: schema of the raw table.
        facts: what the landing says of all its records.
        batch_id: the batch that they land in.
        now: time of the batch, aware.

    Returns:
        One row per record kept, in the schema of the raw table.
    """
    block = item.block
    count = sum(keep)
    rows = range(len(item.ids)) if count == len(item.ids) else list(compress(range(len(item.ids)), keep))

    def chosen(values: Any) -> list[Any]:
        return values if isinstance(rows, range) else [values[i] for i in rows]  # usually all land: no copy

    string = pa.string()
    constant = {
        "source": facts.source, "format": item.format.NAME, "path": item.file.path,
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
    """Make the row of raw.rejects of a record that cannot be read.

    Args:
        item: the block.
        index: of the record in it.
        facts: what the landing says of all its records.
        batch_id: the batch that it lands in.
        now: time of the batch, aware.
    """
    payload = item.block.payloads[index]
    return {
        "reject_id": item.ids[index], "kind": facts.kind, "source": facts.source,
        "format": item.format.NAME, "path": item.file.path,
        "position": item.block.positions[index], "previous_id": item.previous[index],
        "reason": item.block.problems[index], "payload": payload,
        "payload_bytes": item.block.sizes.get(index, len(payload)), "batch_id": batch_id, "landed_at": now,
    }  # fmt: skip
