"""Rows to Parquet files beside a Delta table: exact schemas, byte-capped batches, statistics for the log.

delta-rs' own writer casts silently (1.7 becomes 1 in an integer column); pyarrow's writes what it is given, so the
data is held against the canonical schema first. Part of the write path of `lake.storage.table`, and used through it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from lake.errors import ContractError
from lake.storage import key_index

COLUMN_BYTES = 128 << 20  # small Arrow types have 32-bit offsets; a batch's column stays far below 2 GiB
GROUP_BYTES = 64 << 20  # one row group, the unit that readers hold in memory
GROUP_ROWS = 122_880  # DuckDB's own vector group size: its scans are parallel by row group
FILE_BYTES = 128 << 20  # of Arrow data, some 25 to 60 MB compressed: what a publish rewrites for one changed row
STATS_BYTES = 64  # statistics of longer texts would put pieces of payloads into the log


@dataclass(frozen=True)
class NewFile:
    """A Parquet file that is written and not committed yet.

    Attributes:
        name: file name below the table's folder.
        path: absolute path or URL.
        size: bytes.
        rows: number of rows.
        stats: statistics in Delta's JSON form.
    """

    name: str
    path: str
    size: int
    rows: int
    stats: Mapping[str, Any] = field(default_factory=dict, compare=False)


def write(uri: str, schema: pa.Schema, data: pa.Table | Iterable[pa.RecordBatch]) -> list[NewFile]:
    """Write rows to new Parquet files beside a table's own; they are invisible until `commit`.

    Args:
        uri: the table's folder or URL.
        schema: canonical Arrow schema; the data must match it exactly, but for large or view types of the same values.
        data: rows. Consumed batch by batch: memory is one row group.

    Returns:
        The files, none for no rows.

    Raises:
        ContractError: a column is missing, unknown, of another type, out of order, or null where it is required.
    """
    filesystem, folder = filesystem_of(uri)
    files: list[NewFile] = []
    writer: _FileWriter | None = None
    for batch in _groups(schema, data):
        if writer is None:
            writer = _FileWriter(uri, filesystem, folder, schema)
        writer.add(batch)
        if writer.bytes >= FILE_BYTES:
            files.append(writer.close())
            writer = None
    if writer is not None:
        files.append(writer.close())
    return files


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Hold a batch against a schema: the same values in small types, or an error; never a cast that changes a value.

    Args:
        batch: rows in any Arrow types.
        schema: canonical Arrow schema (small types, nullability as the contract has it).

    Returns:
        The batch in the schema's own types.

    Raises:
        ContractError: says the column, what was found and what the contract has.
    """
    if batch.schema.equals(schema, check_metadata=False):
        _check_nulls(batch, schema)
        return batch
    given, expected = batch.schema.names, schema.names
    if given != expected:
        missing, unknown = [n for n in expected if n not in given], [n for n in given if n not in expected]
        raise ContractError(
            f"columns {given} were found; the contract has {expected} in this order"
            f"{f', missing {missing}' if missing else ''}{f', unknown {unknown}' if unknown else ''}. "
            "Select the contract's columns in its order."
        )
    for name, given_type, expected_type in zip(expected, batch.schema.types, schema.types, strict=True):
        if not _same_values(given_type, expected_type):
            raise ContractError(
                f"column {name!r} has type {given_type}; the contract has {expected_type}. "
                "Cast it where it is made, or change the contract."
            )
    _check_nulls(batch, schema)
    try:
        return batch.cast(schema)
    except (pa.ArrowInvalid, ValueError) as error:
        raise ContractError(
            f"nested values do not match the contract: {error}. Fill them where they are made."
        ) from error


class _FileWriter:
    """One Parquet file in the making."""

    def __init__(self, uri: str, filesystem: pyarrow.fs.FileSystem, folder: str, schema: pa.Schema) -> None:
        self.name = f"part-{uuid.uuid4().hex}.parquet"
        self.path = f"{uri.rstrip('/')}/{self.name}"
        self.schema = schema
        self.bytes = 0
        self.rows = 0
        self.sink = filesystem.open_output_stream(f"{folder}/{self.name}")
        self.metadata: list[pq.FileMetaData] = []
        self.index = key_index.KeyIndex() if schema.names[0] in key_index.KEYS else None
        plain = [f.name for f in schema if _has_stats(f)]
        self.writer = pq.ParquetWriter(
            self.sink, schema, compression="zstd", compression_level=1, use_dictionary=_repeated(schema),
            write_statistics=plain or False, metadata_collector=self.metadata,
        )  # fmt: skip

    def add(self, batch: pa.RecordBatch) -> None:
        self.writer.write_batch(batch, row_group_size=max(batch.num_rows, 1))
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        if self.index is not None:
            self.index.add(batch.column(0))

    def close(self) -> NewFile:
        if self.index is not None:
            self.sink.write(self.index.at(self.sink.tell()))
        self.writer.close()
        size = self.sink.tell()
        self.sink.close()
        return NewFile(self.name, self.path, size, self.rows, _stats(self.metadata[0], self.schema, self.rows))


def _groups(schema: pa.Schema, data: pa.Table | Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield conforming batches of about one row group: small ones joined, large ones cut."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    batches = data.to_batches() if isinstance(data, pa.Table) else data
    if isinstance(data, pa.Table) and not data.num_rows:
        conform(pa.RecordBatch.from_pylist([], schema=data.schema), schema)
    for batch in batches:
        for piece in _pieces(batch):
            piece = conform(piece, schema)
            if waiting and (size + piece.nbytes > GROUP_BYTES or rows + piece.num_rows > GROUP_ROWS):
                yield pa.concat_batches(waiting)
                waiting, rows, size = [], 0, 0
            if piece.num_rows:
                waiting.append(piece)
                rows, size = rows + piece.num_rows, size + piece.nbytes
    if waiting:
        yield pa.concat_batches(waiting)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch until no column is above its byte cap (or one row is)."""
    largest = max((c.nbytes for c in batch.columns), default=0)
    if batch.num_rows > 1 and (largest > COLUMN_BYTES or batch.nbytes > GROUP_BYTES or batch.num_rows > GROUP_ROWS):
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half))
        yield from _pieces(batch.slice(half))
    else:
        yield batch


def _same_values(given: pa.DataType, expected: pa.DataType) -> bool:
    """Say whether two types hold the same values, so that a cast between them changes none."""
    t = pa.types
    # A column of nulls alone has the type null; whether nulls are allowed is checked apart.
    if t.is_null(given) or given.equals(expected):
        return True
    if t.is_string(expected):
        return bool(t.is_large_string(given) or t.is_string_view(given))
    if t.is_binary(expected):
        return bool(t.is_large_binary(given) or t.is_binary_view(given))
    if t.is_list(expected):
        is_list = t.is_list(given) or t.is_large_list(given)
        return bool(is_list and _same_values(given.value_type, expected.value_type))
    if t.is_struct(expected) and t.is_struct(given) and given.num_fields == expected.num_fields:
        pairs = zip(given.fields, expected.fields, strict=True)
        return all(a.name == b.name and _same_values(a.type, b.type) for a, b in pairs)
    return False


def _check_nulls(batch: pa.RecordBatch, schema: pa.Schema) -> None:
    for column, expected in zip(batch.columns, schema, strict=True):
        if not expected.nullable and column.null_count:
            raise ContractError(
                f"column {expected.name!r} is null in {column.null_count} of {batch.num_rows} rows; "
                "the contract requires a value. Fill it where it is made, or change the contract."
            )


def _has_stats(column: pa.Field) -> bool:
    t = pa.types
    is_key = t.is_string(column.type) and (column.name.endswith("_id") or column.name in ("key", "source"))
    return bool(is_key or t.is_integer(column.type) or t.is_timestamp(column.type) or t.is_date(column.type))


def _repeated(schema: pa.Schema) -> list[str]:
    """Columns worth a dictionary: short texts that repeat, never payloads, ids, hashes or nested values."""
    # Parquet gives a dictionary up only once it is full: for unique values that is a megabyte written in vain.
    unique = ("record_id", "reject_id", "example_id", "previous_id", "natural_key", "payload", "text", "key")
    return [
        f.name
        for f in schema
        if pa.types.is_string(f.type) and f.name not in unique and not f.name.endswith(("_hash", "_text"))
    ]


def _stats(metadata: pq.FileMetaData, schema: pa.Schema, rows: int) -> dict[str, Any]:
    """Turn Parquet statistics into Delta's, for the columns where they are short."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    names = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    for column in schema:
        if column.name not in names or not _has_stats(column):
            continue
        groups = [metadata.row_group(g).column(names[column.name]).statistics for g in range(metadata.num_row_groups)]
        if any(g is None or not g.has_null_count for g in groups):
            continue
        nulls[column.name] = sum(g.null_count for g in groups)
        filled = [g for g in groups if g.has_min_max]
        if filled:
            # A statistic too long for the log is left out: Delta then reads the file, which is slower and right.
            least, most = _plain(min(g.min for g in filled)), _plain(max(g.max for g in filled))
            if least is not None and most is not None:
                low[column.name], high[column.name] = least, most
    return {"numRecords": rows, "minValues": low, "maxValues": high, "nullCount": nulls}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str) and len(value.encode()) > STATS_BYTES:
        return None
    return value


def filesystem_of(uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """Return the file system of a folder or URL, and its path there."""
    if "://" not in uri:
        return pyarrow.fs.LocalFileSystem(), uri
    import fsspec

    filesystem, folder = fsspec.core.url_to_fs(uri)
    return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(filesystem)), folder


def read_batches(
    paths: Iterable[str], columns: Sequence[str] | None = None, rows: int = 1024
) -> Iterator[pa.RecordBatch]:
    """Read the rows of a table's files, one file after the other; memory is one row group.

    Args:
        paths: absolute paths or URLs, as `Snapshot.files` has them.
        columns: only these, default all.
        rows: at most so many in a batch.
    """
    for path in paths:
        filesystem, where = filesystem_of(path)
        with filesystem.open_input_file(where) as source:
            yield from pq.ParquetFile(source).iter_batches(batch_size=rows, columns=columns)


def delete_files(files: Iterable[NewFile]) -> None:
    """Delete files that were written and are not committed; one that is gone already is no error."""
    for file in files:
        filesystem, where = filesystem_of(file.path)
        with suppress(FileNotFoundError):
            filesystem.delete_file(where)
