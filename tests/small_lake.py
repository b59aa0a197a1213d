"""A lake of two small tables whose builds are written by hand, so that publishing is tested without a dbt run."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import duckdb
import yaml

from lake.config import LakePaths
from lake.dbt_plugin import prepare
from lake.kernels.project import digest
from lake.releases.workspace import pins_digest
from lake.schema import PACKAGE
from lake.storage.catalog import read_pins

Row = tuple[str, str, str]
COLUMNS = {"examples": ["example_id", "source", "text"], "hits": ["example_id", "item_id", "text"]}
KEYS = {"examples": ["example_id"], "hits": ["example_id", "item_id"]}


@dataclass
class SmallLake:
    """Tables `examples` (key example_id) and `hits` (key example_id, item_id), all columns text."""

    root: Path
    paths: LakePaths

    @staticmethod
    def make(root: Path, name: str = "one", home: Path | None = None) -> SmallLake:
        """Lay out a project and a workspace of their own; with `home`, on a lake that others use too."""
        project = root / f"project_{name}"
        for table, columns in COLUMNS.items():
            properties = [
                {"name": c, "logicalType": "string", "required": True}
                | ({"primaryKey": True, "primaryKeyPosition": KEYS[table].index(c) + 1} if c in KEYS[table] else {})
                for c in columns
            ]
            properties.append({"name": "row_hash", "logicalType": "string", "required": True})
            write_contract(project, table, properties)
        for layer in ("raw", "log"):
            shutil.copytree(PACKAGE / "contracts" / layer, project / "contracts" / layer, dirs_exist_ok=True)
        (project / "dbt_project.yml").write_text("name: small\n")
        return SmallLake(root, LakePaths(str(home or root / "lake"), root / f"{name}.duckdb", project))

    def build(self, examples: list[Row], hits: list[Row] = [], failures: int | None = 0, selection: str = "") -> None:  # noqa: B006
        """Do what a dbt run does to a workspace: pin, write the tables, note the invocation."""
        with duckdb.connect(self.paths.workspace) as connection:
            prepare(connection, self.paths.home, self.paths.project)
            connection.execute("update _lake.base set release = (select release from _lake.session)")
            for table, rows in (("examples", examples), ("hits", hits)):
                columns = ", ".join(f"{c} varchar" for c in COLUMNS[table])
                connection.execute(f"create or replace temp table new ({columns})")
                if rows:
                    connection.executemany("insert into new values (?, ?, ?)", rows)
                connection.execute(f"drop view if exists main.{table}") if is_view(connection, table) else None
                connection.execute(
                    f"create or replace table main.{table} as "
                    "select *, left(sha256(to_json(new)::varchar), 32) as row_hash from new"
                )
            connection.execute(
                "insert into _lake.built values (?, 'build', ?, ?, ?, ?, now())",
                [
                    uuid.uuid4().hex,
                    selection,
                    pins_digest(read_pins(connection)),
                    digest(self.paths.project),
                    failures,
                ],
            )


def write_contract(project: Path, table: str, properties: list[dict[str, object]], version: str = "1.0.0") -> None:
    """Write a contract of the layer curated."""
    body = {"name": table, "logicalType": "object", "physicalType": "table", "properties": properties}
    contract = {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": f"curated.{table}",
        "name": f"curated.{table}",
        "version": version,
        "status": "active",
        "description": {"purpose": "A table of the tests. One row per row."},
        "schema": [body | {"description": "A table of the tests. One row per row."}],
    }
    path = project / "contracts" / "curated" / f"{table}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(contract, sort_keys=False))


def is_view(connection: duckdb.DuckDBPyConnection, table: str) -> bool:
    """Say whether a view of the parent release stands in for a table."""
    found = connection.execute(
        "select 1 from duckdb_views() where schema_name = 'main' and view_name = ? and not internal", [table]
    )
    return found.fetchone() is not None


def rows(*numbers: int, text: str = "text") -> list[Row]:
    """Return rows with ids from numbers."""
    return [(f"e{n:06d}", f"s{n % 3}", f"{text} {n}") for n in numbers]
