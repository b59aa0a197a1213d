"""Which SQL may run: one statement that only reads, as its parsed tree shows.

DuckDB counts `with x as (copy ... to 'f') select 1` as a SELECT and writes the file, so neither the statement's type
nor a read-only connection is enough. DuckDB's own parser gives the tree (`json_serialize_sql`), and every node in it
must be on a list of those that read. Table functions are on a list too: some run a text as SQL, beyond the tree.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from lake.errors import QueryError

NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "RECURSIVE_CTE_NODE"})
TABLE_FUNCTIONS = frozenset(
    {
        *("range", "generate_series", "unnest", "repeat", "repeat_row", "summary", "histogram", "histogram_values"),
        *("json_each", "json_tree", "icu_calendar_names", "pg_timezone_names", "test_all_types"),
        *("duckdb_columns", "duckdb_tables", "duckdb_views", "duckdb_schemas", "duckdb_functions", "duckdb_types"),
        *("duckdb_keywords", "pragma_table_info", "pragma_version"),
    }
)
CATALOGS = frozenset({"information_schema", "pg_catalog"})


@dataclass(frozen=True)
class Reads:
    """What a statement reads.

    Attributes:
        names: last part of the name of each table, lower case.
        lists_catalog: it asks which tables there are.
    """

    names: frozenset[str]
    lists_catalog: bool


def check(connection: duckdb.DuckDBPyConnection, query: str) -> Reads:
    """Let a statement pass that only reads the lake's tables.

    Args:
        connection: any; it parses, and runs nothing of the query.
        query: the user's SQL.

    Returns:
        The tables it names.

    Raises:
        QueryError: it is not SQL, is more than one statement, or could do more than read.
    """
    ((text,),) = connection.execute("select json_serialize_sql(?::varchar)", [query]).fetchall()
    tree = json.loads(text)
    if tree["error"]:
        raise QueryError(_explain(tree, query))
    count = len(tree["statements"])
    if count != 1:
        raise QueryError(f"{count} statements were found; `lake sql` runs one SELECT. Run them one by one.")
    names: set[str] = set()
    lists_catalog = False
    for node in _objects(tree):
        kind = node.get("type")
        if not isinstance(kind, str):
            continue
        if kind.endswith("_NODE") and kind not in NODES:
            raise QueryError(
                f"the query holds a {kind.removesuffix('_NODE').removesuffix('_QUERY')}, which can change something; "
                "`lake sql` only reads. Ask with SELECT."
            )
        if kind == "TABLE_FUNCTION":
            lists_catalog |= _check_function(node)
        elif kind == "BASE_TABLE":
            names.add(node["table_name"].lower())
            lists_catalog |= node["schema_name"].lower() in CATALOGS or node["table_name"].lower().startswith(
                ("duckdb_", "pg_", "sqlite_")
            )
        elif kind == "SHOW_REF":
            lists_catalog = True
            names.add(node["table_name"].strip('"').lower())
    return Reads(frozenset(names), lists_catalog)


def _check_function(node: dict[str, Any]) -> bool:
    """Refuse a table function that is not on the list; say whether it lists the catalog."""
    name = node["function"]["function_name"].lower()
    if name not in TABLE_FUNCTIONS:
        raise QueryError(
            f"the table function {name} is not allowed: `lake sql` reads the lake's tables and no files, and runs "
            "no text as SQL. `show all tables` lists what there is."
        )
    return name.startswith(("duckdb_", "pragma_"))


def _objects(tree: object) -> Iterator[dict[str, Any]]:
    """Walk every object of a parsed tree, without recursion: queries may be deep."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield node
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)


def _explain(tree: dict[str, Any], query: str) -> str:
    if tree.get("error_type") == "parser":
        return f"{tree['error_message']}. Expected one SELECT in DuckDB's SQL."
    if "pivot" in query.lower():
        return (
            "PIVOT and UNPIVOT statements cannot be checked, so they do not run here; expected a SELECT. Write "
            "`select k, count(*) filter (where c = 'x') as x, ... group by k`, or pivot the result in Polars."
        )
    return (
        "only a SELECT (also WITH, VALUES, FROM, DESCRIBE, SUMMARIZE, SHOW) runs here; the statement is something else "
        f"({tree['error_message']}). Ask with SELECT; `dbt` and `lake` change tables."
    )
