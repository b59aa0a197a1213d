"""dbt property files of a project, made in memory from its ODCS files.

One file per contracted model, `models/<layer>/<table>.yml`; one for everything that is not built, `models/raw/raw.yml`
(sources); one beside each kernel's model with the kernel's fingerprint, because dbt's state compares files and does not
see the code that a Python model imports.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from lake.kernels.fingerprint import fingerprint
from lake.kernels.project import kernels
from lake.odcs import unique_keys
from lake.schema import arrow, contract, tables, writer_schema
from lake.sql import identifier
from lake.storage.views import duckdb_types
from transforms.kernel import Kernel

HEADER = "# Made by `lake contract sync` from {origin}; change that and run it again.\n"
MARK = HEADER.split("{", maxsplit=1)[0]
UNBUILT = ("raw", "log")  # layers that are written by the package and not by dbt


def rendered(project: Path) -> dict[Path, str]:
    """Return every dbt property file of a project, by its absolute path, as text.

    Raises:
        ContractError: a contract is wrong, or says what the code that fills its table cannot do, or a model names no
            kernel.
    """
    files = {}
    for table in tables(project):
        if table.split("/")[0] in UNBUILT:
            writer_schema(project, table)
        else:
            text = _text(f"contracts/{table}.yaml", {"models": [_model(project, table)]})
            files[project / "models" / f"{table}.yml"] = text
    memos = kernels(project)
    for name, kernel in memos.items():
        (model,) = (project / "models").rglob(f"memo_{name}.py")
        body = {"models": [_memo_model(name, kernel)]}
        files[model.with_suffix(".yml")] = _text(f"transforms/ (kernel {name})", body)
    raw = [_source_table(project, table) for table in tables(project, "raw")]
    sources = [{"name": "raw", "schema": "raw", "tables": raw}]
    if memos:
        sources.append({"name": "memo", "schema": "memo", "tables": [_memo_table(n, k) for n, k in memos.items()]})
    if raw or memos:
        files[project / "models" / "raw" / "raw.yml"] = _text("contracts/raw/ and transforms/", {"sources": sources})
    return files


def missing_counterparts(project: Path) -> list[str]:
    """Return what stands alone: contracts without a model, and models that people read without a contract."""
    files = [*(project / "models").glob("*/*.sql"), *(project / "models").glob("*/*.py")]
    models = {f"{f.parent.name}/{f.stem}" for f in files if not f.name.startswith("memo_")}
    contracted = {t for t in tables(project) if t.split("/")[0] not in UNBUILT}
    contracts = [f"contracts/{t}.yaml has no model models/{t}.sql" for t in sorted(contracted - models)]
    return contracts + [f"models/{t} has no contract contracts/{t}.yaml" for t in sorted(models - contracted)]


def _model(project: Path, name: str) -> dict[str, Any]:
    loaded = contract(project, name)
    table = loaded["schema"][0]
    is_table = table["physicalType"] == "table"
    types = duckdb_types(arrow(project, name))
    config = {
        "contract": {"enforced": True},
        "on_schema_change": "fail",
        "meta": {"contract_version": loaded["version"]},
    }
    keys = unique_keys(table)
    columns = [_column(p, types[p["name"]], is_table, [p["name"]] in keys) for p in table["properties"]]
    model = {"name": table["name"], "description": table["description"], "config": config}
    rules = [r["arguments"]["properties"] for r in table.get("quality", []) if r.get("metric") == "duplicateValues"]
    tests = [_unique_together(key) for key in [*(k for k in keys if len(k) > 1), *rules]]
    return {**model, **({"data_tests": tests} if tests else {}), "columns": columns}


def _unique_together(key: list[str]) -> dict[str, Any]:
    # dbt's own test on the row of the columns: no package is needed.
    return {"unique": {"arguments": {"column_name": f"row({', '.join(map(identifier, key))})"}}}


def _column(prop: dict[str, Any], data_type: str, constraints: bool, is_unique: bool) -> dict[str, Any]:
    column: dict[str, Any] = {"name": prop["name"], "data_type": data_type}
    if prop.get("description"):
        column["description"] = prop["description"]
    if prop.get("required") and constraints:
        # dbt takes no materialization but its own for one that enforces constraints; `extended` does as tables do.
        column["constraints"] = [{"type": "not_null", "warn_unsupported": False}]
    tests: list[Any] = ["not_null"] if prop.get("required") and not constraints else []
    tests += _tests(prop, is_unique)
    if tests:
        column["data_tests"] = tests
    return column


def _tests(prop: dict[str, Any], is_unique: bool) -> list[Any]:
    tests: list[Any] = ["unique"] if is_unique else []
    for rule in prop.get("quality", []):
        if rule.get("metric") == "invalidValues":
            values = rule["arguments"]["validValues"]
            quote = all(isinstance(v, str) for v in values)
            tests.append({"accepted_values": {"arguments": {"values": values, "quote": quote}}})
    for link in prop.get("relationships", []):
        to, key = link["to"].split(".")
        tests.append({"relationships": {"arguments": {"to": f"ref('{to}')", "field": key}}})
    return tests


def _source_table(project: Path, name: str) -> dict[str, Any]:
    table = contract(project, name)["schema"][0]
    types = duckdb_types(arrow(project, name))
    # No not_null tests: `lake/storage/table.py` refuses nulls as it writes; every build would read the same rows again.
    keys = unique_keys(table)
    columns = [
        _column({**p, "required": False}, types[p["name"]], True, [p["name"]] in keys) for p in table["properties"]
    ]
    return {"name": table["name"], "description": table["description"], "columns": columns}


def _memo_model(name: str, kernel: Kernel) -> dict[str, Any]:
    parameters = {"parameters": dict(kernel.parameters)} if kernel.parameters else {}
    return {
        "name": f"memo_{name}",
        "description": f"Computes what memo.{name} lacks for this build. One row per build.",
        "config": {"meta": {"fingerprint": fingerprint(kernel), **parameters}},
    }


def _memo_table(name: str, kernel: Kernel) -> dict[str, Any]:
    fields = [("key", "VARCHAR"), ("fingerprint", "VARCHAR"), *duckdb_types(kernel.results).items()]
    return {
        "name": name,
        "description": f"Results of the kernel {name} so far. One row per key and fingerprint.",
        "columns": [{"name": n, "data_type": t} for n, t in fields],
    }


def _text(origin: str, body: dict[str, Any]) -> str:
    dumped = yaml.safe_dump({"version": 2, **body}, sort_keys=False, allow_unicode=True, width=1000)
    return HEADER.format(origin=origin) + dumped
