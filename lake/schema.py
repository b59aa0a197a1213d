"""Contracts as Arrow schemas: the canonical types of every table, read from its ODCS file.

Small types only (`string`, `list`, never `large_*`): one field added inside a `list<struct>` of large types makes
Delta merge, update, delete and compact fail. `transforms` takes its schemas from here, so a column is named once.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from lake.errors import ContractError, NotFoundError

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGED = Path(__file__).resolve().parent / "project"

SCALARS: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
}


def project_files() -> Path:
    """Return the folder that holds our own models/, contracts/ and dbt_project.yml: the checkout's or the wheel's."""
    return PACKAGED if PACKAGED.is_dir() else CHECKOUT


@functools.cache
def contract(table: str) -> dict[str, Any]:
    """Load the ODCS contract of a table.

    Args:
        table: layer and name, such as `raw/traces`, `curated/examples`.

    Returns:
        The parsed file.

    Raises:
        NotFoundError: there is no contract of that name.
    """
    path = project_files() / "contracts" / f"{table}.yaml"
    if not path.is_file():
        raise NotFoundError(f"no contract {path}; expected one ODCS file per table under contracts/. Write it there.")
    loaded: dict[str, Any] = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded


def layer_tables(layer: str) -> list[str]:
    """Return the names of a layer's contracts, sorted."""
    return sorted(p.stem for p in (project_files() / "contracts" / layer).glob("*.yaml"))


@functools.cache
def arrow(table: str) -> pa.Schema:
    """Return the canonical Arrow schema of a table's contract (small types, nullability as declared)."""
    return pa.schema([field(p) for p in contract(table)["schema"][0]["properties"]])


def field(prop: Mapping[str, Any]) -> pa.Field:
    """Turn one ODCS property, nested ones too, into an Arrow field."""
    return pa.field(prop["name"], data_type(prop), nullable=not prop.get("required", False))


def data_type(prop: Mapping[str, Any]) -> pa.DataType:
    """Return the Arrow type of an ODCS property.

    Raises:
        ContractError: the logical type is none that we store.
    """
    logical = prop["logicalType"]
    if logical == "array":
        return pa.list_(data_type(prop["items"]))
    if logical == "object":
        return pa.struct([field(p) for p in prop["properties"]])
    if prop.get("physicalType") == "blob":
        return pa.binary()
    if logical not in SCALARS:
        raise ContractError(
            f"property {prop.get('name')} has logicalType {logical!r}; expected one of "
            f"{', '.join([*SCALARS, 'array', 'object'])}. Change it in the contract."
        )
    return SCALARS[logical]
