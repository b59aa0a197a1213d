"""A Soda 4 contract of a table, made in memory from its ODCS file.

Soda passes when nothing was evaluated, so whoever runs it compares the results with `lake.contract.declared`: one
result PASSED for the schema (SCHEMA_CHECK), and one for each declared check, by name. Soda Core 4 is under the Elastic
License 2.0 and comes with the extra `soda`; nothing here imports it.
"""

from __future__ import annotations

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


def soda_contract(project: Path, table: str, schema: str = "main") -> dict[str, Any]:
    """Return the Soda contract of a table, ready for `yaml.safe_dump(..., sort_keys=False)`.

    Args:
        project: folder of contracts/.
        table: layer and name, such as `curated/examples`.
        schema: DuckDB schema in which the table lies.

    Returns:
        A contract for a data source named `lake`: column names, order and types as far as Soda tells them apart, and
        every check of `declared(project, table, schema)` under its name.
    """
    body = contract(project, table)["schema"][0]
    checks = declared(project, table, schema)
    columns = []
    for name, data_type in duckdb_types(arrow(project, table)).items():
        column: dict[str, Any] = {"name": name, "data_type": data_type.split("(", 1)[0]}
        own = [_rendered(c) for c in checks if c.column == name and c.kind in ("missing", "duplicate", "invalid")]
        if own:
            column["checks"] = own
        columns.append(column)
    rest = [_rendered(c) for c in checks if c.kind not in ("missing", "duplicate", "invalid")]
    return {
        "dataset": f"{DATA_SOURCE}/{schema}/{body['name']}",
        "columns": columns,
        "checks": [{"schema": {"name": SCHEMA_CHECK}}, *rest],
    }


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
