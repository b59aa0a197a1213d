"""The one loader of contracts: a project's ODCS files, checked, and the Arrow types of every table in them.

Whoever reads a contract names the project, so an edited file is seen by landing, dbt, audit, publish and SQL alike.
Small types only (`string`, `list`, never `large_*`): one field added inside a `list<struct>` of large types makes
Delta merge, update, delete and compact fail. A file is parsed and checked once per process and state: parsing YAML is
slow.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from lake.errors import ContractError, NotFoundError
from lake.odcs import structure_errors

IN_WHEEL = Path(__file__).resolve().parent / "project"
PACKAGE = IN_WHEEL if IN_WHEEL.is_dir() else Path(__file__).resolve().parent.parent
"""The folder of our own dbt_project.yml, models/ and contracts/: the installed wheel's, else the checkout."""

SCALARS: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
}


def tables(project: Path, layer: str = "*") -> list[str]:
    """Return the tables that have a contract, as `layer/name`, sorted.

    Args:
        project: folder that holds contracts/.
        layer: folder below contracts/; default all.
    """
    return sorted(f"{f.parent.name}/{f.stem}" for f in (project / "contracts").glob(f"{layer}/*.yaml"))


def contract(project: Path, table: str) -> Mapping[str, Any]:
    """Load one contract and check its structure.

    Args:
        project: folder that holds contracts/; `PACKAGE` for what is fixed in code.
        table: layer and name, such as `curated/examples`.

    Returns:
        The parsed file. It is shared between callers: do not change it.

    Raises:
        NotFoundError: there is no such file.
        ContractError: it is no YAML, or says something that no code reads; the message names the place.
    """
    return _load(*_version(project, table))


def arrow(project: Path, table: str) -> pa.Schema:
    """Return the canonical Arrow schema of a table (small types, nullability as declared).

    Args:
        project: folder that holds contracts/; `PACKAGE` for what is fixed in code.
        table: layer and name, such as `curated/examples`.

    Raises:
        NotFoundError: the table has no contract.
        ContractError: the contract is wrong.
    """
    return _arrow(*_version(project, table))


def writer_schema(project: Path, table: str) -> pa.Schema:
    """Return the schema of a table that this package fills itself (raw, log), if it can fill it.

    The code fills the columns of the package's own contract. A project's may have more, which are null in every row.

    Args:
        project: folder that holds contracts/.
        table: layer and name, such as `raw/traces`.

    Raises:
        NotFoundError: the table has no contract.
        ContractError: a column of the package's contract is missing or has another type, or another one is required.
    """
    schema, filled = arrow(project, table), arrow(PACKAGE, table)
    check_columns(project, table, filled.names, "the package fills it")
    required = [place for f in schema if f.name not in filled.names for place in _required_places(f.name, f)]
    if required:
        raise ContractError(
            f"contracts/{table}.yaml requires {', '.join(required)}, which nothing fills; expected columns beside "
            f"those of {PACKAGE / 'contracts' / table}.yaml to be nullable. Remove `required: true` there, or the "
            "columns; nothing was written."
        )
    return schema


def _required_places(place: str, column: pa.Field) -> list[str]:
    """Return where a column of nulls would lack a value: Arrow writes no null struct whose fields are required."""
    own = [] if column.nullable else [place]
    # What lies inside a list may be required: a null list has no elements.
    if pa.types.is_struct(column.type):
        return own + [inner for f in column.type for inner in _required_places(f"{place}.{f.name}", f)]
    return own


def check_columns(project: Path, table: str, columns: list[str], reason: str) -> None:
    """Refuse a project's contract in which columns that code makes have other types than in the package's own.

    Args:
        project: folder that holds contracts/.
        table: layer and name, such as `curated/examples`.
        columns: names of columns of the package's contract.
        reason: why their types are fixed, as a clause.

    Raises:
        NotFoundError: the project has no contract of the table.
        ContractError: says which columns, and the types found and expected.
    """
    schema, own = arrow(project, table), arrow(PACKAGE, table)
    differing = []
    for name in columns:
        expected = own.field(name).type
        present = schema.field(name).type if name in schema.names else None
        # A project may require a field inside a column; the audit and the writers then look for nulls.
        if present is None or _all_nullable(present) != _all_nullable(expected):
            differing.append(f"column {name} is {present or 'absent'}, expected {expected}")
    if differing:
        raise ContractError(
            f"contracts/{table}.yaml: {'; '.join(differing)}, since {reason}. Restore it there, and make what else you "
            "need in a column of another name; nothing was written."
        )


def _field(prop: Mapping[str, Any]) -> pa.Field:
    return pa.field(prop["name"], _data_type(prop), nullable=not prop.get("required", False))


def _data_type(prop: Mapping[str, Any]) -> pa.DataType:
    logical = prop["logicalType"]
    if logical == "array":
        return pa.list_(_data_type(prop["items"]))
    if logical == "object":
        return pa.struct([_field(p) for p in prop["properties"]])
    return pa.binary() if prop.get("physicalType") == "blob" else SCALARS[logical]


def _all_nullable(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_list(data_type):
        return pa.list_(_all_nullable(data_type.value_type))
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(f.name, _all_nullable(f.type)) for f in data_type])
    return data_type


def _version(project: Path, table: str) -> tuple[Path, str, int, int]:
    """Return what a contract is cached by: an edited file is read again, also in one process (dbt, a notebook)."""
    path = project / "contracts" / f"{table}.yaml"
    try:
        stat = path.stat()
    except OSError as error:
        own = PACKAGE / "contracts" / f"{table}.yaml"
        hint = f"Copy {own} there" if own.is_file() and own != path else "Write it there"
        raise NotFoundError(
            f"no contract {path}; expected one ODCS file per table under contracts/. {hint}."
        ) from error
    return path, table, stat.st_mtime_ns, stat.st_size


@functools.lru_cache(maxsize=1024)
def _load(path: Path, table: str, _changed: int, _size: int) -> Mapping[str, Any]:
    try:
        loaded = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ContractError(f"contracts/{table}.yaml is not YAML: {error}. Mend it there.") from error
    errors = list(structure_errors(table, loaded))
    if errors:
        raise ContractError(f"contracts/{table}.yaml: {'; '.join(errors)}. Mend it there; nothing was written.")
    return dict(loaded)


@functools.lru_cache(maxsize=1024)
def _arrow(path: Path, table: str, changed: int, size: int) -> pa.Schema:
    return pa.schema([_field(p) for p in _load(path, table, changed, size)["schema"][0]["properties"]])
