"""SQL over releases, raw tables, logs and the workspace: read-only, and nothing but the lake.

Every table is a view over `read_parquet` of exactly the files of its pinned version: no extension, no catalog, and a
quarter of the memory that a pyarrow dataset takes. A query makes only the views that it names; opening costs a few
milliseconds a table, and the scan is DuckDB's own (tests/bench/bench_sql.py compares it with bare Parquet).

    lake.open().sql("select source, count(*) from examples group by all")
"""

from __future__ import annotations

import functools
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from lake.config import lake_paths
from lake.errors import NotFoundError, QueryError
from lake.kinds import KINDS
from lake.query.readonly import Reads, check
from lake.releases.workspace import open_workspace
from lake.schema import arrow, tables
from lake.sql import identifier, literal, literals, texts
from lake.storage.refs import Refs, Release
from lake.storage.table import snapshot
from lake.storage.views import register_filesystem, scan

if TYPE_CHECKING:
    import polars as pl

BATCH_ROWS = 100_000


@dataclass(frozen=True)
class View:
    """A view of a query connection.

    Attributes:
        name: as SQL names it: `examples`, `raw.traces`.
        files: Parquet files that it may read.
        columns: names in order; with no files, their types too.
        sql: its definition, where it is more than its files.
    """

    name: str
    files: tuple[str, ...] = ()
    columns: pa.Schema | None = None
    sql: str = ""


class Lake:
    """A lake, for reading.

    Args:
        home: its folder or URL; default `LAKE_HOME`, else `.lake` in the project.
    """

    def __init__(self, home: str | os.PathLike[str] | None = None) -> None:
        self.paths = lake_paths(home)
        self.home = self.paths.home
        self.refs = Refs(self.home)

    def release(self, ref: str | int | None = None) -> Release:
        """Return a release by number or tag; None means the last.

        Raises:
            NotFoundError: there is none.
        """
        return self.refs.find(ref)

    def releases(self) -> list[Release]:
        """Return all releases, the oldest first."""
        return self.refs.all()

    def sql(self, query: str, release: str | int | None = None, workspace: bool = False) -> pl.DataFrame:
        """Run one SELECT.

        Args:
            query: DuckDB SQL. Published tables go by their plain names; `raw.*` and `log.*` are always there.
            release: number or tag; tables and `raw.*` are then those that it pins. Default: the last release's tables,
                and `raw.*` as it is now.
            workspace: read what was built last in this workspace instead, published or not.

        Returns:
            The rows.

        Raises:
            QueryError: the query does more than read, or does not run.
        """
        import polars as pl

        with self.relation(query, release, workspace) as rows:
            frame = rows.pl()
        # DuckDB sums integers as HUGEINT, which arrives as a decimal without digits behind the point.
        whole = [c for c, t in frame.schema.items() if t == pl.Decimal(38, 0)]
        return frame.with_columns(frame[c].cast(pl.Int128).shrink_dtype() for c in whole) if whole else frame

    @contextmanager
    def batches(
        self, query: str, release: str | int | None = None, workspace: bool = False
    ) -> Iterator[pa.RecordBatchReader]:
        """Run one SELECT as a stream of Arrow batches, for results larger than memory.

        Args:
            query: as for `sql`.
            release: as for `sql`.
            workspace: as for `sql`.

        Yields:
            A reader of batches of at most 100,000 rows; it ends with the block.
        """
        with self.relation(query, release, workspace) as rows:
            yield rows.to_arrow_reader(BATCH_ROWS)

    @contextmanager
    def relation(
        self, query: str, release: str | int | None = None, workspace: bool = False
    ) -> Iterator[duckdb.DuckDBPyRelation]:
        """Give a checked query as a DuckDB relation on a locked connection that lives as long as the block.

        Args:
            query: as for `sql`.
            release: as for `sql`.
            workspace: as for `sql`.

        Raises:
            QueryError: the query does more than read, or does not run; or release and workspace are both given.
        """
        if workspace and release is not None:
            raise QueryError("--release and --workspace were both given; expected one of them.")
        with _parser().cursor() as parser:
            reads = check(parser, query)
        attach = self.paths.workspace if workspace else None
        views = _workspace_views(self, reads) if workspace else release_views(self, release, reads)
        connection = connect(views, attach)
        try:
            yield connection.sql(query)
        except duckdb.Error as error:
            raise QueryError(self._explain(error, release, workspace)) from error
        finally:
            connection.close()

    def _explain(self, error: duckdb.Error, release: str | int | None, workspace: bool) -> str:
        text = str(error).strip()
        if not isinstance(error, duckdb.CatalogException) or "Table with name" not in text:
            return text
        with_raw = "raw.* and log.*"
        if workspace:
            return f"{text}\nThe workspace has no such table; `show all tables` lists them."
        try:
            published = self.release(release)
        except NotFoundError:
            return f"{text}\nThere is no release yet, so only {with_raw} can be read. Run `lake build`."
        return f"{text}\nRelease {published.number} has {', '.join(sorted(published.tables))}, beside {with_raw}."


def release_views(lake: Lake, ref: str | int | None, reads: Reads | None = None) -> list[View]:
    """Return the views of a release (or of a lake without one) that a query needs.

    Args:
        lake: where.
        ref: number or tag; None for the last release's tables and the newest raw ones.
        reads: what the query names; None for all views.
    """
    release = None if ref is None and not lake.refs.numbers() else lake.release(ref)
    views = []
    for name in sorted(release.tables) if release else []:
        if release and _wanted(reads, name):
            state = release.snapshot(name)
            views.append(View(name, state.files, state.schema))
    pins = release.raw_pins if release and ref is not None else None
    return views + raw_views(lake, reads, pins) + _log_views(lake, reads)


def raw_views(lake: Lake, reads: Reads | None, pins: Mapping[str, int | None] | None = None) -> list[View]:
    """Return `raw.*`: pinned where pins are given, else the newest; empty and typed where nothing landed.

    Args:
        lake: where.
        reads: what the query names; None for all.
        pins: Delta version by table; None in it means that nothing had landed.
    """
    wants_rejects = _wanted(reads, "rejects") or _wanted(reads, "all_rejects")
    views = []
    for name in _names(lake, "raw"):
        if not (_wanted(reads, name) or (wants_rejects and name in (*KINDS, "rejects"))):
            continue
        pin = pins.get(name) if pins is not None else None
        absent = pins is not None and pin is None
        state = None if absent else snapshot(lake.paths.table("raw", name), pin)
        view = "raw.all_rejects" if name == "rejects" else f"raw.{name}"
        columns = state.schema if state else arrow(lake.paths.project, f"raw/{name}")
        views.append(View(view, state.files if state else (), columns))
    return [*views, View("raw.rejects", sql=_counting_rejects())] if wants_rejects else views


def _counting_rejects() -> str:
    """Return the SQL of the rejects that still count.

    A reject no longer counts once a landed record follows the record before it: a log's half-written last line that was
    complete at the next landing. The first record of a file follows none, so there its place in the file decides.
    """
    landed = " union all ".join(
        f"select {literal(kind)} as kind, source, path, position, previous_id from {identifier('raw', kind)}"
        for kind in KINDS
    )
    return f"""
        with landed as ({landed})
        select r.* from raw.all_rejects as r
        where r.previous_id is not null and not exists (
            select 1 from landed as l where l.previous_id = r.previous_id and l.kind = r.kind and l.source = r.source)
        union all
        select r.* from raw.all_rejects as r
        where r.previous_id is null and not exists (
            select 1 from landed as l where l.previous_id is null and l.kind = r.kind and l.source = r.source
            and l.path = r.path and l.position = r.position)"""


def _log_views(lake: Lake, reads: Reads | None) -> list[View]:
    """Return `log.*` as far as the query names them: the newest, empty and typed where nothing was logged."""
    views = []
    for name in _names(lake, "log"):
        if _wanted(reads, name):
            state = snapshot(lake.paths.table("log", name))
            columns = state.schema if state else arrow(lake.paths.project, f"log/{name}")
            views.append(View(f"log.{name}", state.files if state else (), columns))
    return views


def _workspace_views(lake: Lake, reads: Reads | None) -> list[View]:
    """Return views of the workspace's tables and views that the query names, and of the files that they read."""
    catalog = lake.paths.workspace.stem
    with open_workspace(lake.paths.workspace) as connection:
        relations = connection.execute(
            "select schema_name, table_name, null from duckdb_tables() where not internal and database_name = $1 "
            "union all "
            "select schema_name, view_name, sql from duckdb_views() where not internal and database_name = $1",
            [catalog],
        ).fetchall()
    files = tuple(sorted({f for _, _, sql in relations for f in _paths(sql or "")}))
    views = [View("", files)]
    for schema, name, _ in relations:
        if _wanted(reads, name) and not schema.startswith("_"):
            shown = name if schema == "main" else f"{schema}.{name}"
            views.append(View(shown, sql=f"select * from {identifier(catalog, schema, name)}"))
    return views + _log_views(lake, reads)


def connect(views: Sequence[View], attach: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB connection that holds some views and can read nothing else: the only way to one for user SQL.

    Args:
        views: in the order in which they may use each other.
        attach: a DuckDB file that they read, attached read-only.

    Returns:
        An in-memory connection, locked: no files but the views', no settings, no extensions.

    Raises:
        QueryError: a view cannot be made, as when a file of it is gone.
    """
    spill = Path(tempfile.gettempdir()) / f"lakewright-{uuid.uuid4().hex}"
    connection = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            # Else a name that no view has would read a variable of the calling Python.
            "python_enable_replacements": False,
            "temp_directory": str(spill),
        },
    )
    try:
        connection.execute("set TimeZone = 'UTC'")
        connection.execute("set enable_progress_bar = false")  # it would stand in the middle of the rows
        if attach:
            connection.execute(f"attach {literal(str(attach))} as {identifier(attach.stem)} (read_only)")
        for schema in sorted({v.name.split(".")[0] for v in views if "." in v.name}):
            connection.execute(f"create schema if not exists {identifier(schema)}")
        for view in views:
            _create(connection, view)
        # In this order: views are made while files can be opened, and nothing can be set after the lock.
        allowed = sorted({f for v in views for f in v.files})
        connection.execute(f"set allowed_paths = [{literals(allowed)}]")
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
    except duckdb.Error as error:
        connection.close()
        raise QueryError(str(error)) from error
    return connection


def _selection(view: View) -> str:
    """Return the SELECT over a view's files, columns in order."""
    # Not `storage.views.relation`, which gives absent columns a type: it would open a DuckDB database for each table.
    assert view.columns is not None
    columns = ", ".join(map(identifier, view.columns.names))
    options = ["union_by_name = true"] if len(view.files) > 1 else []
    return f"select {columns} from {scan(view.files, *options)}"


def _create(connection: duckdb.DuckDBPyConnection, view: View) -> None:
    for file in view.files[:1]:
        register_filesystem(connection, file)
    if not view.name:
        return
    name = identifier(*view.name.split("."))
    if view.sql:
        connection.execute(f"create view {name} as {view.sql}")
    elif view.files:
        connection.execute(f"create view {name} as {_selection(view)}")
    else:
        assert view.columns is not None
        empty = connection.from_arrow(view.columns.empty_table())
        empty.create(name)


@functools.cache
def _parser() -> duckdb.DuckDBPyConnection:
    """Return a database that only parses: opening one takes longer than most of the rest of a small query."""
    return duckdb.connect()


def _names(lake: Lake, layer: str) -> list[str]:
    return [table.split("/")[1] for table in tables(lake.paths.project, layer)]


def _wanted(reads: Reads | None, name: str) -> bool:
    return reads is None or reads.lists_catalog or name.lower() in reads.names


def _paths(sql: str) -> list[str]:
    """Return the Parquet files that a view's definition names."""
    return [text for text in texts(sql) if text.endswith(".parquet")]
