"""What a workspace says of itself: the lake and the raw versions that it reads, and the tables built in it."""

from __future__ import annotations

import duckdb


def read_base(connection: duckdb.DuckDBPyConnection) -> tuple[str, int | None] | None:
    """Return the lake of a workspace and the release whose tables stand in for those not built; None before a build."""
    rows = connection.execute("select home, release from _lake.base").fetchall()
    return rows[0] if rows else None


def read_pins(connection: duckdb.DuckDBPyConnection) -> dict[str, int | None]:
    """Return the Delta version of each raw table that a workspace reads; None where nothing had landed."""
    return dict(connection.execute("select name, version from _lake.pins order by name").fetchall())


def built_tables(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the tables and extended models that dbt has made in a workspace, sorted; views are not among them."""
    query = (
        "select distinct table_name from duckdb_tables() where schema_name in ('main', '_added') and not internal "
        "order by table_name"
    )
    return [name for (name,) in connection.execute(query).fetchall()]
