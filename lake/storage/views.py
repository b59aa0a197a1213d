"""Versions of Delta tables as SQL: a SELECT over the version's Parquet files, no extension needed.

Such a view binds far quicker than a pyarrow dataset, persists in a DuckDB file, and stays pinned.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

import duckdb
import pyarrow as pa

from lake.sql import identifier, literals
from lake.storage.table import Snapshot


def create_view(name: str, expected: pa.Schema, state: Snapshot | None) -> str:
    """Return the statement that makes a view of a table's version.

    Args:
        name: of the view, as SQL has it.
        expected: the contract's schema.
        state: the version, or None for a table that is not there; see `relation`.
    """
    return f"create or replace view {name} as {relation(expected, state)}"


def relation(expected: pa.Schema, state: Snapshot | None) -> str:
    """Return a SELECT of a table's version in the columns and types of its contract.

    Args:
        expected: the contract's schema; a column that the version does not have is null.
        state: the version; None, or one without files, gives a typed relation without rows.
    """
    present = state.schema.names if state and state.files else []
    types = duckdb_types(expected)
    columns = ", ".join(
        identifier(n) if n in present else f"cast(null as {t}) as {identifier(n)}" for n, t in types.items()
    )
    if not present or state is None:
        return f"select {columns} where false"
    return f"select {columns} from {scan(state.files, 'union_by_name = true')}"


def scan(files: Iterable[str], *options: str) -> str:
    """Return the table function that reads Parquet files.

    Args:
        files: paths or URLs, at least one.
        options: of `read_parquet`, such as `filename = true`.
    """
    # A lake may lie below a folder `kind=x`, which DuckDB would read in place of the column.
    return f"read_parquet({', '.join([f'[{literals(files)}]', 'hive_partitioning = false', *options])})"


def register_filesystem(connection: duckdb.DuckDBPyConnection, place: str) -> None:
    """Let a connection read an object store through fsspec; DuckDB's own way would download an extension.

    Args:
        connection: or a cursor of one; the registration holds for all its cursors.
        place: path or URL of a lake or file; a local path needs nothing.
    """
    protocol, separator, _ = place.partition("://")
    if separator and not connection.filesystem_is_registered(protocol):
        import fsspec

        connection.register_filesystem(fsspec.filesystem(protocol))


@functools.cache
def duckdb_types(schema: pa.Schema) -> Mapping[str, str]:
    """Return the type of each column of an Arrow schema, nested fields included, spelled as DuckDB prints it."""
    with duckdb.connect() as scratch:
        types = scratch.from_arrow(schema.empty_table()).types
        return dict(zip(schema.names, map(str, types), strict=True))
