"""`lake export`: a table of a release as shard files whose bytes depend on the release and nothing else.

Rows go out in id order, cut into shards by number alone, through one writer: JSON with fixed separators, or Parquet in
row groups of 8,192 rows whatever batches the query gave. The folder is written aside and renamed when its manifest is
complete, so it is whole or absent, and an export that is there already is recognised by its manifest and checksums.

    manifest.json   release, digest, contract version, and per shard: rows, bytes, sha256, first and last id
    row_ids.parquet which shard and position hold which row
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from lake.errors import InternalError, UsageError
from lake.files import draft_of, place_folder, write_json
from lake.identity import H
from lake.query.query import Lake
from lake.sql import identifier
from training.formats import provider_row, shape_of, trl_row
from training.register import entry, register
from training.tables import Table, open_table

__all__ = ["FORMATS", "export"]

FORMATS = ("jsonl", "parquet", "openai")
ROW_GROUP = 8192
IDS = pa.schema([("example_id", pa.string()), ("shard", pa.string()), ("position", pa.int64())])
Progress = Callable[[int], None]


class _Writer(Protocol):
    """Writes the rows of one shard."""

    def write(self, rows: pa.Table) -> None:
        """Append rows."""

    def close(self) -> None:
        """Finish the file."""


def export(
    name: str,
    out: Path,
    *,
    release: str | int | None = None,
    file_format: str = "jsonl",
    shards: int = 1,
    lake: Lake | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write a table of a release as shards.

    Args:
        name: published table.
        out: folder; made, or empty, or holding this very export.
        release: number or tag; default the last.
        file_format: `jsonl` (as TRL takes it), `parquet` (every column), `openai` (chat JSONL of providers).
        shards: number of files.
        lake: default `LAKE_HOME`.
        progress: called with the number of rows done.

    Returns:
        export_id, release, table, rows, shards, path, and `already`: whether it was there.

    Raises:
        UsageError: the folder holds something else, or the table cannot be written so.
    """
    lake = lake or Lake()
    if file_format not in FORMATS:
        raise UsageError(f"format {file_format!r} is none of {', '.join(FORMATS)}. Pass one of these with --format.")
    if shards < 1:
        raise UsageError(f"{shards} shards were asked for; expected 1 or more.")
    table = open_table(lake, name, release)
    if file_format == "openai" and shape_of(table.columns) not in ("sft", "pair"):
        raise UsageError(f"{name} holds neither chats nor pairs, the shapes that providers take. Export it as jsonl.")
    out = out.expanduser().resolve()
    manifest = _read_export(out, table, file_format, shards)
    already = manifest is not None
    if manifest is None:
        manifest = _write(lake, table, out, file_format, shards, progress)
    _register(lake, out, manifest)
    facts = {k: manifest[k] for k in ("export_id", "release", "table", "digest", "format", "rows")}
    return {**facts, "shards": len(manifest["shards"]), "path": str(out), "already": already}


def _identity(table: Table, file_format: str, shards: int) -> dict[str, Any]:
    """Return what decides the bytes of an export."""
    parts = (table.name, table.digest, table.contract_version, file_format, str(shards))
    return {
        "export_id": H("export", *parts), "release": table.release.number, "table": table.name,
        "digest": table.digest, "contract_version": table.contract_version, "format": file_format, "key": table.key,
    }  # fmt: skip


def _read_export(out: Path, table: Table, file_format: str, shards: int) -> dict[str, Any] | None:
    """Return the manifest of this very export if the folder holds it, whole; None where there is nothing yet."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    try:
        manifest = json.loads((out / "manifest.json").read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{out} is there and holds no export. Choose another --out, or empty it.") from error
    wanted = _identity(table, file_format, shards)
    if differ := [k for k in wanted if k not in ("release", "key") and manifest.get(k) != wanted[k]]:
        other = f"release {manifest.get('release')} of {manifest.get('table')} as {manifest.get('format')}"
        raise UsageError(
            f"{out} holds another export ({other}, other {', '.join(differ)}), and exports are not overwritten. "
            "Choose another --out, or remove the folder."
        )
    for shard in manifest["shards"]:
        path = out / shard["file"]
        if not path.is_file() or _sha256(path) != shard["sha256"]:
            raise UsageError(f"{path} is not what the export wrote (checksum). Remove {out} and export again.")
    return dict(manifest)


def _write(
    lake: Lake, table: Table, out: Path, file_format: str, shards: int, progress: Progress | None
) -> dict[str, Any]:
    out.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(out) as draft:
        draft.mkdir()
        described = []
        with closing(_Rows(lake, table, progress)) as rows, pq.ParquetWriter(draft / "row_ids.parquet", IDS) as ids:
            tools = _has_tools(lake, table)
            for number in range(shards):
                file = f"{table.name}-{number:05d}-of-{shards:05d}.{'parquet' if file_format == 'parquet' else 'jsonl'}"
                count = table.rows * (number + 1) // shards - table.rows * number // shards
                writer = (
                    _ParquetShard(draft / file, rows.schema)
                    if file_format == "parquet"
                    else _JsonShard(draft / file, table, file_format, tools)
                )
                written = _write_shard(draft / file, writer, rows.take(count), table.key, ids)
                described.append({"file": file, **written})
            rows.finish()
        described_ids = {"file": "row_ids.parquet", "sha256": _sha256(draft / "row_ids.parquet")}
        manifest = {
            **_identity(table, file_format, shards), "rows": table.rows, "shards": described, "row_ids": described_ids,
        }  # fmt: skip
        write_json(draft / "manifest.json", manifest)
        if not place_folder(draft, out):
            # Another process was first, with the same bytes or with another export.
            return _read_export(out, table, file_format, shards) or manifest
        return manifest


def _write_shard(
    path: Path, writer: _Writer, parts: Iterator[pa.Table], key: str, ids: pq.ParquetWriter
) -> dict[str, Any]:
    """Write one shard and its rows' ids; return its entry of the manifest."""
    rows, first, last = 0, None, None
    with closing(writer):
        for part in parts:
            writer.write(part)
            names = part[key].to_pylist()
            first, last = first or names[0], names[-1]
            places = pa.array(range(rows, rows + len(names)), pa.int64())
            ids.write_table(pa.table([pa.array(names), pa.array([path.name] * len(names)), places], schema=IDS))
            rows += len(names)
    return {"rows": rows, "bytes": path.stat().st_size, "sha256": _sha256(path), "first_id": first, "last_id": last}


class _JsonShard:
    """JSONL: UTF-8, one object a line, no white space between tokens.

    Args:
        path: of the shard.
        table: what is written.
        file_format: `jsonl` or `openai`.
        tools: whether any row of the table has tools.
    """

    def __init__(self, path: Path, table: Table, file_format: str, tools: bool) -> None:
        self.file = path.open("wb")
        self.key, self.tools, self.format = table.key, tools, file_format
        self.shape = shape_of(table.columns)

    def write(self, rows: pa.Table) -> None:
        """Append rows."""
        for row in rows.to_pylist():
            shown = (
                provider_row(row, self.shape)
                if self.format == "openai"
                else trl_row(row, self.key, self.shape, tools=self.tools)
            )
            self.file.write(json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Finish the file."""
        self.file.close()


class _ParquetShard:
    """Parquet with every column; a row group is a part that `_Rows` cut, so its bytes do not depend on batches."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.writer = pq.ParquetWriter(path, schema, compression="zstd")

    def write(self, rows: pa.Table) -> None:
        """Append rows as one row group."""
        self.writer.write_table(rows, row_group_size=ROW_GROUP)

    def close(self) -> None:
        """Finish the file."""
        self.writer.close()


class _Rows:
    """A table's rows in id order, cut into parts by number alone."""

    def __init__(self, lake: Lake, table: Table, progress: Progress | None) -> None:
        columns = ", ".join(map(identifier, table.columns))
        query = f"select {columns} from {identifier(table.name)} order by {identifier(table.key)}"
        self._context = lake.batches(query, table.release.number)
        self._reader = self._context.__enter__()
        self.schema = self._reader.schema
        self._left = pa.Table.from_batches([], self.schema)
        self._done, self._progress = 0, progress

    def take(self, count: int) -> Iterator[pa.Table]:
        """Give the next rows in parts of ROW_GROUP rows; the last may be shorter."""
        while count > 0:
            part = self._next(min(count, ROW_GROUP))
            count -= len(part)
            self._done += len(part)
            yield part
            if self._progress:
                self._progress(self._done)

    def finish(self) -> None:
        """Make sure that nothing is left."""
        if len(self._left) or next(iter(self._reader), None) is not None:
            raise InternalError("the table holds more rows than its release says.")

    def close(self) -> None:
        """Let the query go."""
        self._context.__exit__(None, None, None)

    def _next(self, count: int) -> pa.Table:
        parts = [self._left]
        while sum(map(len, parts)) < count:
            batch = next(iter(self._reader), None)
            if batch is None:
                raise InternalError("the table holds fewer rows than its release says.")
            parts.append(pa.Table.from_batches([batch]))
        joined = pa.concat_tables(parts)
        self._left = joined.slice(count)
        # `take` copies: chunks and offsets of the query's batches would show in the Parquet pages.
        return joined.slice(0, count).combine_chunks().take(pa.array(range(count), pa.int64()))


def _has_tools(lake: Lake, table: Table) -> bool:
    if "tools" not in table.columns:
        return False
    query = f"select 1 from {identifier(table.name)} where tools is not null limit 1"
    return bool(lake.sql(query, table.release.number).height)


def _register(lake: Lake, out: Path, manifest: dict[str, Any]) -> None:
    """Enter an export in the logs: its rows once, the export once for each folder."""
    ids = pq.read_table(out / "row_ids.parquet", schema=IDS)
    export_id = manifest["export_id"]
    rows = ids.add_column(0, "export_id", pa.array([export_id] * len(ids), pa.string()))
    if len(rows):
        register(lake, "export_rows", rows, {"export_id": export_id})
    row = entry(
        lake, "exports", export_id=export_id, table_name=manifest["table"], release=manifest["release"],
        digest=manifest["digest"], contract_version=manifest["contract_version"], format=manifest["format"],
        shards=len(manifest["shards"]), rows=manifest["rows"], path=str(out),
        manifest_sha256=_sha256(out / "manifest.json"),
    )  # fmt: skip
    register(lake, "exports", row, {"export_id": export_id, "path": str(out)})


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
