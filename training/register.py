"""Entries of `log.*`: what was exported and trained, each once, whoever registers it and however often.

A registration appends to a Delta table by compare-and-swap, so of two processes that register the same thing the
second finds it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from lake.query.query import Lake
from lake.schema import writer_schema
from lake.sql import identifier, literal
from lake.storage.parquet import NewFile, delete_files
from lake.storage.table import commit, create, retry_on_conflict, write


def register(lake: Lake, log: str, rows: pa.Table, once: Mapping[str, str]) -> bool:
    """Append rows to a log unless it has some of these keys.

    Args:
        lake: where.
        log: table of `contracts/log`, such as `runs`.
        rows: the columns of the package's contract, in any order; what else the project's has is null.
        once: column values that tell this entry from others; text columns.

    Returns:
        Whether they were new.
    """
    uri, schema = lake.paths.table("log", log), _columns(lake, log)
    for column in schema:
        if column.name not in rows.column_names:
            rows = rows.append_column(column, pa.nulls(len(rows), column.type))
    same = " and ".join(f"{identifier(column)} = {literal(value)}" for column, value in once.items())
    new: list[NewFile] = []

    def attempt() -> bool:
        base = create(uri, schema)
        # Looked up after `base` was read: what somebody else registers from here on makes the commit fail.
        if lake.sql(f"select 1 from log.{log} where {same} limit 1").height:
            # Those of the try before. A commit that went through while its answer was lost is an entry of our own.
            delete_files(file for file in new if file.path not in base.files)
            return False
        new.extend([] if new else write(uri, schema, rows.select(schema.names).cast(schema)))
        commit(base, new, note={"registered": log})
        return True

    return retry_on_conflict(uri, attempt)


def entry(lake: Lake, log: str, **values: Any) -> pa.Table:
    """Return one row of a log, stamped now in its timestamp column."""
    schema = _columns(lake, log)
    stamps = {f.name: datetime.now(UTC) for f in schema if pa.types.is_timestamp(f.type) and not f.nullable}
    return pa.Table.from_pylist([stamps | values], schema=schema)


def _columns(lake: Lake, log: str) -> pa.Schema:
    return writer_schema(lake.paths.project, f"log/{log}")
