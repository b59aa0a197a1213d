"""The structure of an ODCS file: which keys, types and rules a contract may have here, and what its keys are.

A key that no code reads would be a promise that nobody checks, so unknown keys, rules and types are errors.
`lake.schema.contract`, the one loader, checks each file by this before anything is made from it.
Follows the Open Data Contract Standard 3.1 (Bitol, 2025).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# Keys that are read here, and keys of the standard that are prose for people.
ROOT_KEYS = {"apiVersion", "kind", "id", "name", "version", "status", "description", "schema", "tags", "team"}
TABLE_KEYS = {"name", "logicalType", "physicalType", "description", "properties", "quality", "tags", "customProperties"}
PROPERTY_KEYS = {
    *("name", "businessName", "description", "classification", "examples", "tags", "customProperties"),
    *("logicalType", "physicalType", "logicalTypeOptions", "required", "unique", "primaryKey", "primaryKeyPosition"),
    *("items", "properties", "quality", "relationships"),
}
SCALAR_TYPES = ("string", "binary", "boolean", "integer", "number", "timestamp", "date")
OPTION_KEYS = {"pattern", "minLength", "maxLength", "minimum", "maximum"}
BOUNDS = (
    "mustBe",
    "mustNotBe",
    "mustBeGreaterThan",
    "mustBeGreaterOrEqualTo",
    "mustBeLessThan",
    "mustBeLessOrEqualTo",
)
RULE_KEYS = {"name", "description", "type", "metric", "arguments", "query", "dimension", "severity", *BOUNDS}
METRICS = {"rowCount": set(), "invalidValues": {"validValues"}, "duplicateValues": {"properties"}}
STATUSES = ("proposed", "draft", "active", "deprecated", "retired")


def primary_key(table: Mapping[str, Any]) -> list[str]:
    """Return the columns of a table's primary key, in order; an empty list where the contract names none.

    Args:
        table: the one element of a contract's `schema`.
    """
    keys = [p for p in table["properties"] if p.get("primaryKey")]
    return [p["name"] for p in sorted(keys, key=lambda p: p.get("primaryKeyPosition", 0))]


def unique_keys(table: Mapping[str, Any]) -> list[list[str]]:
    """Return the columns, or groups of columns, whose values are unique: the primary key first.

    Args:
        table: the one element of a contract's `schema`.

    Returns:
        Lists of column names; a primary key of several columns is one of them, in the order of primaryKeyPosition.
    """
    key = primary_key(table)
    primary = [key] if key else []
    return primary + [[p["name"]] for p in table["properties"] if p.get("unique") and [p["name"]] not in primary]


def structure_errors(table: str, contract: Any) -> Iterator[str]:
    """Yield what is wrong with a parsed contract.

    Args:
        table: layer and name that its path gives it, such as `curated/examples`.
        contract: the parsed file, of any type.

    Yields:
        One message an error: its place, what was found and what was expected.
    """
    if not isinstance(contract, Mapping):
        yield f"holds {type(contract).__name__}, expected a mapping"
        return
    dotted = table.replace("/", ".")
    yield from _unknown_keys("the file", contract, ROOT_KEYS)
    expected = {"kind": ("DataContract",), "id": (dotted,), "name": (dotted,), "status": STATUSES}
    for key, allowed in expected.items():
        if contract.get(key) not in allowed:
            yield f"{key} is {contract.get(key)!r}, expected {' or '.join(allowed)}"
    if not str(contract.get("apiVersion", "")).startswith("v3."):
        yield f"apiVersion is {contract.get('apiVersion')!r}, expected v3.1.0"
    parts = str(contract.get("version", "")).split(".")
    if len(parts) != 3 or not all(p.isdigit() for p in parts):
        yield f"version is {contract.get('version')!r}, expected three numbers such as 1.0.0"
    schema = contract.get("schema")
    if not isinstance(schema, list) or len(schema) != 1 or not isinstance(schema[0], Mapping):
        yield "schema must be a list of exactly one table"
        return
    yield from _table_errors(table.split("/")[-1], schema[0])


def _table_errors(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown_keys("the table", table, TABLE_KEYS)
    if table.get("name") != name:
        yield f"the table is named {table.get('name')!r}, expected {name!r} as the file"
    if table.get("physicalType") not in ("table", "view"):
        yield f"physicalType is {table.get('physicalType')!r}, expected table or view"
    last = str(table.get("description", "")).strip().rstrip(".").rsplit(". ", 1)[-1]
    if not last.startswith("One row per "):
        yield "the table's description must end with its grain, 'One row per ...'"
    properties = table.get("properties")
    if not isinstance(properties, list) or not properties:
        yield "the table has no properties"
        return
    yield from _properties_errors("", properties)
    names = {p.get("name") for p in properties if isinstance(p, Mapping)}
    yield from _not_lists("the table", table, "quality")
    for rule in _list_of(table, "quality"):
        yield from _rule_errors(f"a rule of {name}", rule, column=None, names=names)


def _properties_errors(parent: str, properties: Any) -> Iterator[str]:
    if not isinstance(properties, list) or not properties:
        yield f"{parent or 'the table'} needs a list of properties"
        return
    seen: set[str] = set()
    for prop in properties:
        name = prop.get("name") if isinstance(prop, Mapping) else None
        if not isinstance(name, str) or not name:
            yield f"a property of {parent or 'the table'} has no name: {prop!r}"
            continue
        if name.lower() in seen:
            yield f"property {parent}{name} is there twice"
        seen.add(name.lower())
        yield from _property_errors(f"{parent}{name}", prop)


def _property_errors(place: str, prop: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown_keys(place, prop, PROPERTY_KEYS)
    top = not any(c in place for c in ".[")
    logical = prop.get("logicalType")
    for key in ("required", "unique", "primaryKey"):
        if not isinstance(prop.get(key, False), bool):
            yield f"{place}: {key} is {prop[key]!r}, expected true or false"
    for key in ("unique", "primaryKey", "quality", "relationships", "logicalTypeOptions"):
        if key in prop and not top:
            yield f"{place}: {key} is for columns, not for what lies inside one"
    if logical == "array":
        if not isinstance(prop.get("items"), Mapping):
            yield f"{place} is an array without items"
            return
        yield from _property_errors(f"{place}[]", prop["items"])
    elif logical == "object":
        yield from _properties_errors(f"{place}.", prop.get("properties"))
    elif logical not in SCALAR_TYPES:
        yield f"{place} has logicalType {logical!r}, expected one of {', '.join([*SCALAR_TYPES, 'array', 'object'])}"
    yield from _unknown_keys(f"{place}.logicalTypeOptions", prop.get("logicalTypeOptions", {}), OPTION_KEYS)
    yield from _not_lists(place, prop, "quality", "relationships")
    for rule in _list_of(prop, "quality"):
        yield from _rule_errors(f"a rule of {place}", rule, column=place, names=set())
    for relation in _list_of(prop, "relationships"):
        is_mapping = isinstance(relation, Mapping)
        if not is_mapping or set(relation) - {"type", "to"} or str(relation.get("to", "")).count(".") != 1:
            yield f"{place}: relationship {relation!r}, expected to: table.column"


def _rule_errors(place: str, rule: Any, column: str | None, names: set[Any]) -> Iterator[str]:
    if not isinstance(rule, Mapping):
        yield f"{place} is {rule!r}, expected a mapping"
        return
    yield from _unknown_keys(place, rule, RULE_KEYS)
    kind = rule.get("type", "library")
    if kind == "text":
        return
    if kind not in ("library", "sql"):
        yield f"{place} has type {kind!r}, expected library, sql or text"
        return
    bounds = [b for b in BOUNDS if b in rule]
    if len(bounds) != 1:
        yield f"{place} has {bounds or 'no bound'}, expected exactly one of {', '.join(BOUNDS)}"
    if kind == "sql":
        if not rule.get("name") or "${object}" not in str(rule.get("query", "")):
            yield f"{place} needs a name and a query over ${{object}} that gives one number"
        return
    metric, arguments = rule.get("metric"), rule.get("arguments", {})
    if metric not in METRICS:
        known = f"expected one of {', '.join(METRICS)} (required and unique stand at the column)"
        yield f"{place} has metric {metric!r}, {known}"
        return
    yield from _unknown_keys(place, arguments, METRICS[metric])
    if (metric == "invalidValues") != (column is not None):
        yield f"{place}: {metric} belongs to {'a column' if column is None else 'the table'}"
    elif metric == "invalidValues" and (not arguments.get("validValues") or rule.get("mustBe") != 0):
        yield f"{place} needs arguments.validValues and mustBe: 0"
    elif metric == "duplicateValues":
        columns = arguments.get("properties") or []
        if rule.get("mustBe") != 0 or not columns or not set(columns) <= names:
            yield f"{place} needs arguments.properties, columns of this table, and mustBe: 0"


def _not_lists(place: str, mapping: Mapping[str, Any], *keys: str) -> Iterator[str]:
    for key in keys:
        if not isinstance(mapping.get(key, []), list):
            yield f"{place}: {key} is {mapping[key]!r}, expected a list"


def _list_of(mapping: Mapping[str, Any], key: str) -> list[Any]:
    value = mapping.get(key)
    return value if isinstance(value, list) else []


def _unknown_keys(place: str, mapping: Any, known: set[str]) -> Iterator[str]:
    if not isinstance(mapping, Mapping):
        yield f"{place} is {mapping!r}, expected a mapping"
        return
    for key in mapping:
        if key not in known:
            yield f"{place} has an unknown key {key!r}"
