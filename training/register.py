"""Entries of `log.*`: what was exported and trained, each once, whoever registers it and however often.

A registration appends to a Delta table by compare-and-swap, so of two processes that register the same thing the
second finds it there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from random import uniform
from typing import Any

import pyarrow as pa

from lake.errors import InternalError
from lake.query.query import Lake, quote
from lake.schema import arrow
from lake.storage.table import CommitConflict, commit, create, snapshot, write


def register(lake: Lake, log: str, rows: pa.Table, once: Mapping[str, str]) -> bool:
    """Append rows to a log unless it has some of these keys.

    Args:
        lake: where.
        log: table of `contracts/log`, such as `runs`.
        rows: its columns.
        once: column values that tell this entry from others; text columns.

    Returns:
        Whether they were new.
    """
    uri, schema = lake.paths.table("log", log), arrow(f"log/{log}")
    base = create(uri, schema)
    new = None
    for _ in range(50):
        same = " and ".join(f"{column} = {quote(value)}" for column, value in once.items())
        # Read after `base`: what came between makes the commit fail.
        if lake.sql(f"select 1 from log.{log} where {same} limit 1").height:
            return False
        new = new or write(uri, schema, rows.cast(schema))
        try:
            commit(base, new, note={"registered": log})
        except CommitConflict:
            time.sleep(uniform(0.01, 0.2))
            base = snapshot(uri) or base
        else:
            return True
    raise InternalError(f"{uri} changed at each of 50 tries to write to it. Try again when less is going on.")


def entry(log: str, **values: Any) -> pa.Table:
    """Return one row of a log, stamped now in its timestamp column."""
    schema = arrow(f"log/{log}")
    stamps = {f.name: datetime.now(UTC) for f in schema if pa.types.is_timestamp(f.type)}
    return pa.Table.from_pylist([stamps | values], schema=schema)
