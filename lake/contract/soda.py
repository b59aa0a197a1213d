"""A Soda 4 contract of a table, made in memory from its ODCS file.

Soda passes when nothing was evaluated, so whoever runs it compares the results with `lake.contract.declared`: one
result PASSED for the schema (SCHEMA_CHECK), and one for each declared check, by name. Soda Core 4 is under the Elastic
License 2.0 and comes with the extra `soda`; nothing here imports it.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from lake.contract.checks import Check, declared
from lake.schema import arrow, contract
from lake.storage.views import duckdb_types

DATA_SOURCE = "lake"
SCHEMA_CHECK = "columns are those of the contract"
THRESHOLDS = {
    "mustBe": "must_be",
    "mustNotBe": "must_not_be",
    "mustBeGreaterThan": "must_be_greater_than",
    "mustBeGreaterOrEqualTo": "must_be_greater_than_or_equal",
    "mustBeLessThan": "must_be_less_than",
    "mustBeLessOrEqualTo": "must_be_less_than_or_equal",
}


def soda_contract(
    project: Path,
    table: str,
    schema: str = "main",
    of_rows: bool | None = None,
    taken_over: Collection[str] = (),
) -> dict[str, Any]:
    """Return the Soda contract of a table, ready for `yaml.safe_dump(..., sort_keys=False)`.

    Args:
        project: folder of contracts/.
        table: layer and name, such as `curated/examples`.
        schema: DuckDB schema in which the table lies.
        of_rows: only the checks that judge each row by itself (True), or only the others (False).
        taken_over: as for `declared`.

    Returns:
        A contract for a data source named `lake`: column names, order and types as far as Soda tells them apart, and
        the checks of `declared(project, table, schema, taken_over)` under their names.
    """
    body = contract(project, table)["schema"][0]
    checks = [c for c in declared(project, table, schema, taken_over) if of_rows in (None, c.is_of_rows)]
    columns = []
    for name, data_type in duckdb_types(arrow(project, table)).items():
        column: dict[str, Any] = {"name": name, "data_type": data_type.split("(", 1)[0]}
        own = [_rendered(c) for c in checks if c.column == name and c.kind in ("missing", "duplicate", "invalid")]
        if own:
            column["checks"] = own
        columns.append(column)
    rest = [_rendered(c) for c in checks if c.kind not in ("missing", "duplicate", "invalid")]
    shape = [] if of_rows else [{"schema": {"name": SCHEMA_CHECK}}]
    # Soda refuses an empty list.
    listed = {"checks": [*shape, *rest]} if shape or rest else {}
    return {"dataset": f"{DATA_SOURCE}/{schema}/{body['name']}", "columns": columns, **listed}


def _rendered(check: Check) -> dict[str, Any]:
    # The qualifier keeps two checks of one type on one column apart; Soda takes letters, digits and a few signs.
    named = {"name": check.name, "qualifier": "".join(c if c.isalnum() else "_" for c in check.name)}
    threshold = {THRESHOLDS[check.bound[0]]: check.bound[1]}
    if check.kind == "missing":
        return {"missing": named}
    if check.kind == "duplicate":
        return {"duplicate": named}
    if check.kind == "invalid":
        return {"invalid": {**named, "valid_values": list(check.values)}}
    if check.kind == "count":
        return {"row_count": {**named, "threshold": threshold}}
    if check.kind == "metric":
        return {"metric": {**named, "query": check.rows, "threshold": threshold}}
    return {"failed_rows": {**named, "query": check.rows}}
