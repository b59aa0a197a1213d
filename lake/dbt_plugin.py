"""What dbt reads: raw tables at pinned versions, memos, and the parent release, as views in the workspace.

dbt-duckdb calls `Plugin` for each connection that it opens. The views are persistent, so everything after (models,
tests, `dbt show`, `lake sql --workspace`) reads the same versions. `_lake` holds what the workspace was made from:

    _lake.base     home, release       the lake, and the release whose tables stand in for models not built here
    _lake.pins     name, version       Delta version of each raw table; null: nothing had landed
    _lake.fresh    name, version, statement    what the macro `note_start` pins when a whole build begins
    _lake.session  release, project_digest, base     the lake's last release, the project as this invocation found it,
                                and the statements that lay the release out as the base of a whole build
    _lake.built    one row an invocation that wrote, made by the macros `note_start` and `note_end`

Only the macro knows whether an invocation is whole: `dbt retry` runs under the flags of the build that it continues,
and a selectors file selects without a flag. Costs a look at each raw table's log, and the kernels' import.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import dbt.flags
import duckdb
import pyarrow as pa
from dbt.adapters.duckdb.plugins import BasePlugin
from dbt.adapters.factory import get_adapter_by_type
from dbt_common.invocation import get_invocation_id

from lake import schema
from lake.config import find_project
from lake.errors import UsageError
from lake.kernels import memo, project
from lake.kinds import KINDS
from lake.releases.base import Base, Project, project_of
from lake.releases.lineage import extended_models
from lake.sql import identifier, literal
from lake.storage.catalog import built_tables, read_base, read_pins
from lake.storage.refs import Refs, Release
from lake.storage.table import snapshot
from lake.storage.views import create_view, register_filesystem, relation

# Landings first: they are committed after the rows that they count, so what is pinned never lacks a counted row.
RAW = ("landings", "rejects", *KINDS, "amendments")

TABLES = """
create schema if not exists raw;
create schema if not exists memo;
create schema if not exists _lake;
create table if not exists _lake.base (home varchar, release integer);
create table if not exists _lake.pins (name varchar, version bigint);
create table if not exists _lake.built (
    invocation_id varchar, command varchar, selection varchar, pins_digest varchar, project_digest varchar,
    failures integer, built_at timestamptz
);
create or replace table _lake.fresh (name varchar, version bigint, statement varchar);
create or replace table _lake.session (release integer, project_digest varchar, base varchar);
"""


class Plugin(BasePlugin):
    """dbt-duckdb's hook; the profile gives `home`."""

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        """Take the profile's settings."""
        self.home = _absolute(str(plugin_config["home"]))
        self.prepared = ""
        self.lock = threading.Lock()

    def update_connection_config(self, creds: Any, config: dict[str, Any]) -> None:
        """Make the workspace's folder, and keep DuckDB from looking for extensions on the network."""
        Path(creds.path).expanduser().parent.mkdir(parents=True, exist_ok=True)
        config["autoinstall_known_extensions"] = "false"

    def configure_connection(self, conn: duckdb.DuckDBPyConnection) -> None:
        """Point the views when the workspace is opened."""
        self._prepare(conn)

    def configure_cursor(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Write times as UTC, for they stand in row hashes; point the views for a later invocation of one process."""
        cursor.execute("set timezone = 'UTC'")
        register_filesystem(cursor, self.home)
        self._prepare(cursor)

    def _prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        with self.lock:
            if self.prepared != get_invocation_id():
                manifest = get_adapter_by_type("duckdb").get_macro_resolver()
                prepare(connection, self.home, _project_folder(), json.dumps(_variables(), sort_keys=True), manifest)
                self.prepared = get_invocation_id()


def prepare(
    connection: duckdb.DuckDBPyConnection, home: str, folder: Path, variables: str = "{}", manifest: Any = None
) -> None:
    """Make a workspace ready for dbt.

    Args:
        connection: the open workspace.
        home: absolute path or URL of the lake.
        folder: the project.
        variables: dbt's `--vars`, as canonical JSON.
        manifest: dbt's; without it no model is extended.

    Raises:
        UsageError: the workspace belongs to another lake.
        ContractError: a raw table's contract is one that landing cannot fill, a model `memo_*` names no kernel, or an
            extended model reads a table that it does not follow.
    """
    columns = {name: schema.writer_schema(folder, f"raw/{name}") for name in RAW}
    connection.execute("set timezone = 'UTC'")
    register_filesystem(connection, home)
    connection.execute(TABLES)
    refs = Refs(home)
    numbers = refs.numbers()
    last = numbers[-1] if numbers else None
    newest_release = refs.load(last) if last else None
    _bind(connection, home, newest_release)
    for name, version in read_pins(connection).items():
        try:
            connection.execute(_raw_view(home, name, version, columns[name]))
        except duckdb.IOException:  # no release names the version, so that `lake gc` may have taken its files
            connection.execute(_gone_view(name, version, columns[name]))
    fresh: dict[str, int | None] = {}
    for name in RAW:
        newest = snapshot(f"{home}/raw/{name}")
        fresh[name] = newest.version if newest else None
        row = [name, fresh[name], create_view(identifier("raw", name), columns[name], newest)]
        connection.execute("insert into _lake.fresh values (?, ?, ?)", row)
    kernels = project.kernels(folder)
    for name, kernel in kernels.items():
        connection.execute(create_view(identifier("memo", name), memo.stored(kernel), memo.newest(home, kernel)))
    marks = {name: memo.fingerprint(kernel) for name, kernel in kernels.items()}
    models = extended_models(manifest, marks, variables) if manifest else []
    state = project_of(folder, home, columns, models, kernels)
    bound = read_base(connection)
    standing = refs.load(bound[1]) if bound and bound[1] in numbers else None
    if standing:
        _stand_in(connection, standing)
    connection.execute(_base(state, refs, standing).statements(read_pins(connection)))
    row = [last, project.digest(folder, variables), _base(state, refs, newest_release).statements(fresh)]
    connection.execute("insert into _lake.session values (?, ?, ?)", row)


def _base(state: Project, refs: Refs, release: Release | None) -> Base:
    """Return a release as what a build starts from; none at all where dbt is to build everything whole."""
    if release is None or _flag("FULL_REFRESH"):
        return Base(state)
    return Base(state, release, refs.lineages(release.number))


def _raw_view(home: str, name: str, version: int | None, columns: pa.Schema) -> str:
    """Return the statement that points `raw.<name>` at a version, or at a typed empty relation for None."""
    pinned = None if version is None else snapshot(f"{home}/raw/{name}", version)
    return create_view(identifier("raw", name), columns, pinned)


def _gone_view(name: str, version: int | None, columns: pa.Schema) -> str:
    """Return the statement that makes a view which can be replaced, and says why it cannot be read."""
    message = (
        f"files of raw.{name} version {version}, which this workspace has pinned, are gone; expected those of a "
        "version that a release names, or of the last day. Run `dbt build` without a selection, which pins anew."
    )
    select = relation(columns, None).removesuffix("where false")
    view = identifier("raw", name)
    return f"create or replace view {view} as {select} where cast(error({literal(message)}) as boolean)"


def _absolute(home: str) -> str:
    """Return a lake's place without the working directory or a trailing slash."""
    return home.rstrip("/") if "://" in home else str(Path(home).expanduser().resolve())


def _bind(connection: duckdb.DuckDBPyConnection, home: str, last: Release | None) -> None:
    """Give a new workspace the pins of the last release, else of what has landed; refuse that of another lake."""
    base = read_base(connection)
    if base is None:
        pins = dict(last.raw_pins) if last else {}
        connection.execute("delete from _lake.pins")  # of a process that was killed here
        for name in RAW:
            newest = None if last else snapshot(f"{home}/raw/{name}")
            version = newest.version if newest else pins.get(name)
            connection.execute("insert into _lake.pins values (?, ?)", [name, version])
        connection.execute("insert into _lake.base values (?, ?)", [home, last.number if last else None])
    elif base[0] != home:
        raise UsageError(
            f"this workspace was built from the lake {base[0]}, and dbt's target is the lake {home}. Set "
            "LAKE_WORKSPACE to another file for it, or delete the workspace: all in it can be built again."
        )


def _stand_in(connection: duckdb.DuckDBPyConnection, release: Release) -> None:
    """Make a view of a released table's name where the workspace has no table of its own."""
    built = built_tables(connection)
    for name in release.tables:
        if name not in built:
            state = release.snapshot(name)
            connection.execute(create_view(identifier("main", name), state.schema, state))


def _project_folder() -> Path:
    named = _flag("PROJECT_DIR")
    return Path(named).resolve() if named else find_project() or schema.PACKAGE


def _variables() -> dict[str, Any]:
    return dict(_flag("VARS") or {})


def _flag(name: str) -> Any:
    return getattr(dbt.flags.get_flags(), name, None)
