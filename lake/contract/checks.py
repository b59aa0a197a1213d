"""What a contract declares, as checks: each with the SQL that shows the rows that break it.

The Soda contract and the message of a failed audit are made from this one list. Types are checked to the innermost
field, since Soda sees `STRUCT` for every nested column, and takes INTEGER for BIGINT. A primary key of several columns
is unique as a whole, never column by column.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lake.odcs import BOUNDS, unique_keys
from lake.schema import arrow, contract
from lake.sql import identifier, literal, literals
from lake.storage.views import duckdb_types


@dataclass(frozen=True)
class Check:
    """One declared check.

    Attributes:
        name: unique within the table; also the name of the Soda check.
        kind: type, missing, duplicate, invalid, rows (no row may be there), metric (a number within a bound) or count.
        column: the column it is about, or None for the table.
        rows: a query that returns the rows that break it; of a metric without such rows, the query of the number.
        values: the valid values of an `invalid` check.
        bound: ODCS bound and value of a `metric` or `count`, such as ("mustBe", 0).
        is_of_rows: each row is judged by itself, so that a row which passed once passes as long as it is the same.
    """

    name: str
    kind: str
    column: str | None
    rows: str
    values: tuple[str | int | float, ...] = ()
    bound: tuple[str, float] = ("mustBe", 0)
    is_of_rows: bool = False


def declared(project: Path, table: str, schema: str = "main", taken_over: Collection[str] = ()) -> list[Check]:
    """Return every check that a table's contract declares.

    Args:
        project: folder of contracts/.
        table: layer and name, such as `curated/examples`.
        schema: DuckDB schema in which it and the tables it refers to lie.
        taken_over: tables of a workspace whose rows are those of a release that passed these checks, but for what the
            schemas `_added` and `_removed` hold: what breaks a check is among the former, or names one of the latter.

    Returns:
        Checks in the contract's order: types first, then column by column, then the table's own.
    """
    body = contract(project, table)["schema"][0]
    relation = identifier(schema, body["name"])
    checks = [_exact_types(schema, body["name"], duckdb_types(arrow(project, table)))]
    keys = unique_keys(body)
    for prop in body["properties"]:
        is_unique = [prop["name"]] in keys
        checks.extend(_column_checks(relation, schema, prop, is_unique, body["name"], taken_over))
    checks.extend(_unique_together(relation, key) for key in keys if len(key) > 1)
    checks.extend(_table_check(relation, rule) for rule in body.get("quality", []) if rule.get("type") != "text")
    return checks


def _exact_types(schema: str, table: str, types: Mapping[str, str]) -> Check:
    expected = ", ".join(f"({literal(c)}, {literal(t)})" for c, t in types.items())
    wrong = (
        "select e.column_name, e.data_type as expected, c.data_type as found "
        f"from (values {expected}) as e(column_name, data_type) left join information_schema.columns as c "
        f"on c.table_catalog = current_database() and c.table_schema = {literal(schema)} "
        f"and c.table_name = {literal(table)} and c.column_name = e.column_name "
        "where c.data_type is distinct from e.data_type"
    )
    return Check("every column has its exact type", "type", None, wrong)


def _column_checks(
    relation: str, schema: str, prop: Mapping[str, Any], is_unique: bool, table: str, taken_over: Collection[str]
) -> Iterator[Check]:
    name, column = prop["name"], identifier(prop["name"])
    added = identifier("_added", table)

    def of_rows(check: str, kind: str, predicate: str, values: tuple[Any, ...] = ()) -> Check:
        return Check(check, kind, name, f"select * from {relation} where {predicate}", values, is_of_rows=True)

    if prop.get("required"):
        yield of_rows(f"{name} is there", "missing", f"{column} is null")
    for place, predicate in _inner_nulls(name, column, prop):
        yield of_rows(f"{place} is there", "rows", predicate)
    if is_unique:
        among = f"{column} in (select {column} from {added})" if table in taken_over else f"{column} is not null"
        twice = f"select * from {relation} where {among} qualify count(*) over (partition by {column}) > 1"
        yield Check(f"{name} is unique", "rows" if table in taken_over else "duplicate", name, twice)
    for key, value in prop.get("logicalTypeOptions", {}).items():
        yield of_rows(f"{name} keeps {key}", "rows", f"not ({_option(column, key, value)})")
    for rule in prop.get("quality", []):
        if rule.get("type", "library") == "sql":
            yield _sql_rule(relation, rule, name)
        elif rule.get("type", "library") == "library":
            values = tuple(rule["arguments"]["validValues"])
            check = rule.get("name", f"{name} is a known value")
            yield of_rows(check, "invalid", f"{column} not in ({literals(values)})", values)
    for link in prop.get("relationships", []):
        other, key = link["to"].split(".")
        lost = (
            f"select * from {relation} where {column} is not null "
            # A null among the keys would make `not in` true of nothing.
            f"and {column} not in (select {identifier(key)} from {identifier(schema, other)} "
            f"where {identifier(key)} is not null)"
        )
        if {table, other} <= {*taken_over}:
            # Few keys are looked for among many, and not the other way round: `not in` hashes all that it reads.
            removed, others = identifier("_removed", other), identifier(schema, other)
            asked = f"select {column} from {added} union all select {identifier(key)} from {removed}"
            there = f"select {identifier(key)} from {others} where {identifier(key)} in ({asked})"
            left = f"select {identifier(key)} from {removed} where {identifier(key)} not in ({there})"
            lost = (
                f"select * from {added} where {column} is not null and {column} not in ({there}) "
                f"union all by name select * from {relation} where {column} in ({left})"
            )
        yield Check(f"{name} is in {link['to']}", "rows", name, lost)


def _inner_nulls(place: str, sql: str, prop: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (place, predicate of the rows that lack it) for each required field inside a column."""
    if prop["logicalType"] == "array":
        item = prop["items"]
        if item.get("required"):
            yield f"{place}[]", f"len(list_filter({sql}, lambda x: x is null)) > 0"
        depth = f"x{place.count('[]')}"
        for inner, predicate in _inner_nulls(f"{place}[]", depth, item):
            yield inner, f"len(list_filter({sql}, lambda {depth}: {predicate})) > 0"
    elif prop["logicalType"] == "object":
        for child in prop["properties"]:
            path = f"struct_extract({sql}, {literal(child['name'])})"
            if child.get("required"):
                yield f"{place}.{child['name']}", f"{sql} is not null and {path} is null"
            yield from _inner_nulls(f"{place}.{child['name']}", path, child)


def _option(column: str, key: str, value: Any) -> str:
    if key == "pattern":
        return f"regexp_matches({column}, {literal(value)})"
    text, operator = {
        "minLength": (f"length({column})", ">="),
        "maxLength": (f"length({column})", "<="),
        "minimum": (column, ">="),
        "maximum": (column, "<="),
    }[key]
    return f"{text} {operator} {literal(value)}"


def _table_check(relation: str, rule: Mapping[str, Any]) -> Check:
    if rule.get("type", "library") == "sql":
        return _sql_rule(relation, rule, None)
    if rule["metric"] == "rowCount":
        bound = _bound(rule)
        return Check(
            rule.get("name", "rows are as many as declared"),
            "count",
            None,
            f"select count(*) from {relation}",
            bound=bound,
        )
    return _unique_together(relation, rule["arguments"]["properties"], rule.get("name"))


def _unique_together(relation: str, key: list[str], name: str | None = None) -> Check:
    columns = ", ".join(map(identifier, key))
    twice = f"select * from {relation} qualify count(*) over (partition by {columns}) > 1"
    return Check(name or f"{' and '.join(key)} are unique together", "rows", None, twice)


def _sql_rule(relation: str, rule: Mapping[str, Any], column: str | None) -> Check:
    query = rule["query"].replace("${object}", relation).strip().rstrip(";")
    if column is not None:
        query = query.replace("${property}", identifier(column))
    bound = _bound(rule)
    return Check(
        rule["name"], "metric", column, query, bound=bound, is_of_rows=bound == ("mustBe", 0) and _counts_rows(query)
    )


@functools.cache
def _counts_rows(query: str) -> bool:
    """Say whether a query counts those rows of one table that a predicate over the row alone picks."""
    import duckdb

    with duckdb.connect() as scratch:
        ((text,),) = scratch.execute("select json_serialize_sql($1::varchar)", [query]).fetchall()
    nodes = [*_nodes(json.loads(text))]
    kinds = [kind for node in nodes for kind in (node.get("type"), node.get("class")) if isinstance(kind, str)]
    functions = [name for node in nodes if isinstance(name := node.get("function_name"), str)]
    aggregates = [name for name in functions if name in _aggregates()]
    return (
        kinds.count("SELECT_NODE") == kinds.count("BASE_TABLE") == 1
        and not {"SUBQUERY", "WINDOW", "JOIN", "SET_OPERATION_NODE", "TABLE_FUNCTION"}.intersection(kinds)
        and aggregates == ["count_star"]
        and not any(node.get("group_expressions") for node in nodes)
    )


def _nodes(tree: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(tree, Mapping):
        yield tree
    children = tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list) else ()
    for child in children:
        yield from _nodes(child)


@functools.cache
def _aggregates() -> frozenset[str]:
    import duckdb

    with duckdb.connect() as scratch:
        found = scratch.execute("select function_name from duckdb_functions() where function_type = 'aggregate'")
        return frozenset(name for (name,) in found.fetchall())


def _bound(rule: Mapping[str, Any]) -> tuple[str, float]:
    return next((key, rule[key]) for key in BOUNDS if key in rule)
