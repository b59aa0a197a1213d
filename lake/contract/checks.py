"""What a contract declares, as checks: each with the SQL that shows the rows that break it.

The Soda contract and the message of a failed audit are made from this one list. Types are checked to the innermost
field, since Soda sees `STRUCT` for every nested column, and takes INTEGER for BIGINT. A primary key of several columns
is unique as a whole, never column by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    """

    name: str
    kind: str
    column: str | None
    rows: str
    values: tuple[str | int | float, ...] = ()
    bound: tuple[str, float] = ("mustBe", 0)


def declared(project: Path, table: str, schema: str = "main") -> list[Check]:
    """Return every check that a table's contract declares.

    Args:
        project: folder of contracts/.
        table: layer and name, such as `curated/examples`.
        schema: DuckDB schema in which it and the tables it refers to lie.

    Returns:
        Checks in the contract's order: types first, then column by column, then the table's own.
    """
    body = contract(project, table)["schema"][0]
    relation = identifier(schema, body["name"])
    checks = [_exact_types(schema, body["name"], duckdb_types(arrow(project, table)))]
    keys = unique_keys(body)
    for prop in body["properties"]:
        checks.extend(_column_checks(relation, schema, prop, [prop["name"]] in keys))
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


def _column_checks(relation: str, schema: str, prop: Mapping[str, Any], is_unique: bool) -> Iterator[Check]:
    name, column = prop["name"], identifier(prop["name"])
    if prop.get("required"):
        yield Check(f"{name} is there", "missing", name, f"select * from {relation} where {column} is null")
    for place, predicate in _inner_nulls(name, column, prop):
        yield Check(f"{place} is there", "rows", name, f"select * from {relation} where {predicate}")
    if is_unique:
        twice = f"select * from {relation} where {column} is not null qualify count(*) over (partition by {column}) > 1"
        yield Check(f"{name} is unique", "duplicate", name, twice)
    for key, value in prop.get("logicalTypeOptions", {}).items():
        yield Check(
            f"{name} keeps {key}", "rows", name, f"select * from {relation} where not ({_option(column, key, value)})"
        )
    for rule in prop.get("quality", []):
        if rule.get("type", "library") == "sql":
            yield _sql_rule(relation, rule, name)
        elif rule.get("type", "library") == "library":
            values = tuple(rule["arguments"]["validValues"])
            wrong = f"select * from {relation} where {column} not in ({literals(values)})"
            yield Check(rule.get("name", f"{name} is a known value"), "invalid", name, wrong, values=values)
    for link in prop.get("relationships", []):
        other, key = link["to"].split(".")
        lost = (
            f"select * from {relation} where {column} is not null "
            # A null among the keys would make `not in` true of nothing.
            f"and {column} not in (select {identifier(key)} from {identifier(schema, other)} "
            f"where {identifier(key)} is not null)"
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
    return Check(rule["name"], "metric", column, query, bound=_bound(rule))


def _bound(rule: Mapping[str, Any]) -> tuple[str, float]:
    return next((key, rule[key]) for key in BOUNDS if key in rule)
