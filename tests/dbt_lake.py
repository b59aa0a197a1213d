"""A lake and a workspace of its own, with real runs of dbt on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from lake.landing.land import land
from tests import dbt_process

ROOT = Path(__file__).resolve().parents[1]
HALF = "sum(cast(cast('0x' || substr(row_hash, {}, 16) as ubigint) as hugeint)) % 18446744073709551616"
DIGEST = f"select count(*), {HALF.format(1)}, {HALF.format(17)} from main."


@dataclass(frozen=True)
class DbtLake:
    """One lake, one workspace, one project.

    Attributes:
        folder: where the lake, the workspace and dbt's own files lie.
        project: folder of dbt_project.yml.
        workspace_name: file name of the workspace.
    """

    folder: Path
    project: Path = ROOT
    workspace_name: str = "workspace.duckdb"

    @property
    def home(self) -> str:
        return str(self.folder / "lake")

    @property
    def workspace(self) -> Path:
        return self.folder / self.workspace_name

    def land(self, path: Path, kind: str, source: str, **options: Any) -> None:
        land([path], kind, source, home=self.home, **options)

    def dbt(self, *args: str, expect: int = 0) -> str:
        """Run dbt in a process of its own; returns its output."""
        environment = {
            "LAKE_HOME": self.home,
            "LAKE_WORKSPACE": str(self.workspace),
            "DBT_TARGET_PATH": str(self.folder / "target"),
            "DBT_LOG_PATH": str(self.folder / "logs"),
            "DBT_USE_COLORS": "false",
        }
        code, output = dbt_process.run([*args, "--profiles-dir", "lake"], self.project, environment)
        assert code == expect, output[-8000:]
        return output

    @contextmanager
    def open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open the workspace for reading."""
        with duckdb.connect(self.workspace, read_only=True) as connection:
            connection.execute("set timezone = 'UTC'")
            yield connection

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the workspace."""
        with self.open() as connection:
            return connection.execute(query).fetchall()

    def digests(self) -> dict[str, tuple[Any, ...]]:
        """Rows and digest of every table that a release would hold."""
        query = (
            "select distinct table_name from duckdb_columns() where schema_name = 'main' and column_name = 'row_hash'"
        )
        names = sorted(row[0] for row in self.rows(query))
        return {name: self.rows(f'{DIGEST}"{name}"')[0] for name in names}

    def computed(self) -> dict[str, int]:
        """How many results each kernel computed at the last build."""
        query = "select table_name from duckdb_tables() where schema_name = 'main' and starts_with(table_name, 'memo_')"
        names = [row[0] for row in self.rows(query)]
        return {name.removeprefix("memo_"): self.rows(f"select computed from {name}")[0][0] for name in names}
