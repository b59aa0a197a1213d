"""Paths of the shared lake, the checkout's own workspace and the project."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lake.errors import UsageError
from lake.kinds import KINDS
from lake.schema import PACKAGE

NO_TELEMETRY = {
    "SODA_CORE_TELEMETRY_ENABLED": "false",
    "GX_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
}
"""Environment in which no library that we start reports to its makers."""


@dataclass(frozen=True)
class LakePaths:
    """The folders of one lake and one workspace.

    Attributes:
        home: `LAKE_HOME`, shared by people and CI: raw/, memo/, tables/, log/, refs/. A path, or an object-store URL.
        workspace: `LAKE_WORKSPACE`, the DuckDB file that dbt builds in; the checkout's own.
        project: the folder of dbt_project.yml.
    """

    home: str
    workspace: Path
    project: Path

    def table(self, *parts: str) -> str:
        """Return the URI of a place below home, such as `table("raw", "traces")`."""
        return "/".join([self.home.rstrip("/"), *parts])


def lake_paths(home: str | os.PathLike[str] | None = None) -> LakePaths:
    """Work out the paths from an argument, else the environment, else the working directory.

    Args:
        home: overrides `LAKE_HOME`; default `.lake` below the project.

    Returns:
        Absolute paths. The project is the nearest folder upwards that holds a dbt_project.yml, else our own files.
    """
    project = find_project()
    base = project or Path.cwd()
    chosen = str(home or os.environ.get("LAKE_HOME") or base / ".lake")
    if "://" not in chosen:
        chosen = str(Path(chosen).expanduser().resolve())
    workspace = os.environ.get("LAKE_WORKSPACE") or base / ".lake" / "workspace.duckdb"
    return LakePaths(chosen, Path(workspace).expanduser().resolve(), project or PACKAGE)


def find_project() -> Path | None:
    """Return the nearest folder from here upwards that holds a dbt_project.yml, or None."""
    here = Path.cwd().resolve()
    return next((f for f in [here, *here.parents] if (f / "dbt_project.yml").is_file()), None)


def git_commit(folder: Path) -> str | None:
    """Return the commit that a folder's repository is on, None outside one or without git."""
    with suppress(FileNotFoundError):
        git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
        return git.stdout.strip() or None
    return None


def check_kind(kind: str) -> str:
    """Return the kind.

    Raises:
        UsageError: there is no such kind; the message lists those that there are.
    """
    if kind not in KINDS:
        raise UsageError(f"kind {kind!r} is none of {', '.join(KINDS)}. Pass one of these with --kind.")
    return kind
