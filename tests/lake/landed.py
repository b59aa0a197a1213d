"""What lies in a lake, read with DuckDB: the truth that the landing tests compare with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from lake import table


def rows(home: Path | str, name: str, columns: str = "*", where: str = "true") -> list[tuple[Any, ...]]:
    """Read rows of a raw table, nothing where there is no table."""
    state = table.snapshot(f"{home}/raw/{name}")
    if state is None or not state.files:
        return []
    return duckdb.sql(f"select {columns} from read_parquet({list(state.files)}) where {where} order by all").fetchall()


def content(home: Path | str, kind: str) -> tuple[list[Any], list[Any]]:
    """Return what is in a lake whatever the order of arrival: records and rejects."""
    records = rows(home, kind, "record_id, source, format, previous_id, natural_key, payload, payload_hash, license")
    rejects = rows(home, "rejects", "reject_id, source, previous_id, reason, payload, payload_bytes")
    return records, rejects
