"""Publishing: the workspace's tables become new versions of the lake's, and then one file names them all.

A publish is a difference by row hash against the parent release: files whose rows all stay are kept as they are, files
with a row that went are rewritten, new rows go to new files, in one commit of adds and removes per table. So a release
costs what changed: 1,000 new rows beside 200,000 wrote 1,000 (tests/bench/bench_publish.py). Of a model that took rows
over from the parent the build knows the difference, and no row that stays is read.

Nobody sees anything before the release's own file is there; a publisher that dies before leaves versions that no
release names, and the next one restores the parent's version first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb
import pyarrow as pa

from lake.config import LakePaths, git_commit
from lake.errors import AuditError, ConflictError, StaleBuildError
from lake.releases.workspace import (
    SUMS,
    Build,
    Table,
    check_allowed,
    check_build,
    content,
    digest,
    open_workspace,
    published_tables,
)
from lake.sql import identifier
from lake.storage.compact import small_files
from lake.storage.parquet import NewFile
from lake.storage.refs import Lineage, MemoVersion, Refs, Release, TableVersion, check_tag
from lake.storage.table import Snapshot, commit, create, replace, restore, retry_on_conflict, snapshot, write
from lake.storage.views import scan

BATCH_ROWS = 8_192


@dataclass(frozen=True)
class Published:
    """What a publish did.

    Attributes:
        release: the release that now holds the workspace's content.
        is_new: False when the parent held the same content under the same contracts.
        written: rows that were written, by table.
    """

    release: Release
    is_new: bool
    written: Mapping[str, int]


def publish(
    paths: LakePaths,
    tag: str | None = None,
    force: bool = False,
    allow_empty: Sequence[str] = (),
    audited: str | None = None,
) -> Published:
    """Publish the workspace's last build, which has passed its audit.

    Args:
        paths: of the lake, the workspace and the project.
        tag: a name for the release.
        force: move the tag when it names another release.
        allow_empty: tables that may lose all their rows.
        audited: invocation of dbt whose tables passed the audit.

    Returns:
        The release and what was written.

    Raises:
        StaleBuildError: the last build was partial, failed, of another state of the project, or came after the audit.
        AuditError: a table lost all its rows.
        ConflictError: somebody published since this build pinned its inputs.
        UsageError: the tag is not allowed or names another release.
    """
    refs = Refs(paths.home)
    if tag is not None:
        check_tag(tag)
    with open_workspace(paths.workspace) as connection:
        build = check_build(connection, paths)
        if audited is not None and build.invocation_id != audited:
            raise StaleBuildError(
                f"{paths.workspace} was audited as built by dbt's invocation {audited} and now holds that of "
                f"{build.invocation_id}. Run `lake publish`, which audits first."
            )
        tables = published_tables(connection, paths.project)
        check_allowed(tuple(allow_empty), tables)
        parent = find_parent(refs, build)
        changes = read_changes(connection, parent)
        contents = {
            t.name: changes[t.name].content(connection)
            if t.name in changes
            else content(connection, identifier("main", t.name))
            for t in tables
        }
        check_emptied(parent, {name: rows for name, (rows, _) in contents.items()}, allow_empty)
        versions, written, commit_id = {}, {}, git_commit(paths.project)
        for table in tables:
            change, counted = changes.get(table.name), contents[table.name]
            publisher = _Publisher(connection, refs, paths, build, parent, commit_id, table, change, *counted)
            versions[table.name], written[table.name] = publisher.publish()
        lineage = _lineage(connection, paths, build)
    is_same = parent is not None and dict(parent.tables) == versions
    # Equal digests under equal contracts are the same content: a release of its own would say nothing.
    release = parent if parent and is_same else _release(paths, build, parent, versions, commit_id)
    # Before the release is there: a tag that is taken must not leave a release without the name asked for.
    if tag is not None and not force:
        refs.check_free(tag, release.number)
    if not is_same:
        refs.add(release)
    # After the release, of which it is a note: a publisher that dies between costs the next build its rows anew.
    refs.add_lineage(release.number, lineage)
    if tag is not None:
        refs.add_tag(tag, release.number, force)
    return Published(release, not is_same, written)


@dataclass(frozen=True)
class Change:
    """What an extended model of the workspace changes of the parent release's table.

    Attributes:
        name: of the table.
        key: column by which its rows are exchanged.
        base: SQL of the parent's rows.
        before: the parent's version.
    """

    name: str
    key: str
    base: str
    before: TableVersion

    @property
    def added(self) -> str:
        """SQL name of the rows that the parent lacks."""
        return identifier("_added", self.name)

    @property
    def removed(self) -> str:
        """Clause that keeps the rows which the parent's table loses."""
        return f"{identifier(self.key)} in (select {identifier(self.key)} from {identifier('_removed', self.name)})"

    def content(self, connection: duckdb.DuckDBPyConnection) -> tuple[int, str]:
        """Return rows and digest of the whole: the parent's, less what goes, and what comes."""
        went = _sums(connection, f"({self.base}) where {self.removed}")
        came = _sums(connection, self.added)
        was = (self.before.rows, int(self.before.digest[:16], 16), int(self.before.digest[16:], 16))
        rows, first, second = (old - minus + plus for old, minus, plus in zip(was, went, came, strict=True))
        return rows, digest(first, second)


def read_changes(connection: duckdb.DuckDBPyConnection, parent: Release | None) -> dict[str, Change]:
    """Return what changes of the tables whose rows were taken over from the parent, by table.

    Args:
        connection: the open workspace.
        parent: the release that the build stands on.
    """
    extended = connection.execute(
        "select name, key, relation from _lake.extended where relation is not null"
    ).fetchall()
    return {name: Change(name, key, sql, parent.tables[name]) for name, key, sql in extended if parent}


def _sums(connection: duckdb.DuckDBPyConnection, relation: str) -> tuple[int, int, int]:
    (sums,) = connection.execute(f"select {SUMS} from {relation}").fetchall()
    return sums


def _lineage(connection: duckdb.DuckDBPyConnection, paths: LakePaths, build: Build) -> Lineage:
    """Return by what code, checks and memos the workspace was built."""
    from lake.kernels import memo, project
    from lake.releases.base import audits

    code = connection.execute("select name, code from _lake.extended").fetchall()
    memos = {name: memo.table_id(paths.home, kernel) or "" for name, kernel in project.kernels(paths.project).items()}
    tables = {name: json.loads(text) for name, text in code}
    return Lineage(tables, audits(paths.project), memos, build.project_digest, build.raw_pins)


def find_parent(refs: Refs, build: Build) -> Release | None:
    """Return the release that a build stands on, which must still be the last.

    Args:
        refs: of the lake.
        build: of the workspace.

    Raises:
        ConflictError: it is not.
    """
    last = refs.last()
    number = last.number if last else None
    if number != build.parent:
        raise ConflictError(
            f"this build pinned its inputs beside release {build.parent or 'none'}, and the last release is "
            f"{number or 'none'} now; tables are never merged. Run `lake build --rebase`."
        )
    return last


def check_emptied(parent: Release | None, rows: Mapping[str, int], allow_empty: Sequence[str]) -> None:
    """Refuse a table that had rows in the parent release and has none now.

    Args:
        parent: None before the first release.
        rows: number of rows by table, as they would be published.
        allow_empty: tables that may lose all their rows.

    Raises:
        AuditError: names the tables.
    """
    before = parent.tables if parent else {}
    lost = [n for n, count in rows.items() if not count and n in before and before[n].rows and n not in allow_empty]
    if lost:
        tables = ", ".join(f"{n} ({before[n].rows} rows in release {parent.number if parent else 0})" for n in lost)
        flags = " ".join(f"--allow-empty {n}" for n in lost)
        raise AuditError(f"no rows are left in {tables}. If that is meant, pass {flags}.")


def _release(
    paths: LakePaths,
    build: Build,
    parent: Release | None,
    versions: Mapping[str, TableVersion],
    commit_id: str | None,
) -> Release:
    """Put together a new release."""
    from lake.kernels import memo, project

    kernels = project.kernels(paths.project)
    stored = {name: memo.newest(paths.home, kernel) for name, kernel in kernels.items()}
    return Release(
        number=parent.number + 1 if parent else 1,
        parent=parent.number if parent else None,
        tables=dict(versions),
        raw_pins=dict(build.raw_pins),
        memos={
            n: MemoVersion(memo.fingerprint(k), s.version if (s := stored[n]) else None) for n, k in kernels.items()
        },
        git_commit=commit_id,
        project_digest=build.project_digest,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        home=paths.home,
    )


@dataclass
class _Publisher:
    """One table on its way into the lake."""

    connection: duckdb.DuckDBPyConnection
    refs: Refs
    paths: LakePaths
    build: Build
    parent: Release | None
    git_commit: str | None
    table: Table
    change: Change | None
    rows: int
    digest: str

    def publish(self) -> tuple[TableVersion, int]:
        """Bring the lake's table to the workspace's content; return its version and the rows written."""
        before = self.parent.tables.get(self.table.name) if self.parent else None
        base = self.parent.snapshot(self.table.name) if self.parent and before else None
        is_same_schema = base is not None and base.schema.equals(self.table.schema, check_metadata=False)
        if before and is_same_schema and (before.rows, before.digest) == (self.rows, self.digest):
            return self.named(before.version), 0
        if before and base and is_same_schema:
            removes, query = self.difference(base)
        else:
            removes, query = (base.files if base else ()), f"from {self.source}"
        # Not for tables that are there: `create` would hold a schema that is about to be replaced against the new one.
        if snapshot(self.uri) is None:
            create(self.uri, self.table.schema)
        adds = write(self.uri, self.table.schema, self.batches(query))
        head = self.commit(before.version if before else None, adds, removes, is_same_schema)
        return self.named(head.version), sum(f.rows for f in adds)

    @property
    def uri(self) -> str:
        return self.paths.table("tables", self.table.name)

    @property
    def source(self) -> str:
        return identifier("main", self.table.name)

    def named(self, version: int) -> TableVersion:
        return TableVersion(version, self.rows, self.digest, self.table.contract_version)

    def difference(self, base: Snapshot) -> tuple[tuple[str, ...], str]:
        """Return the parent's files that go, and the query of the rows to write.

        A row's hash covers its id, so equal hashes are equal (id, row_hash). Should a table hold a row twice, in spite
        of its contract, the sums do not add up, and it is written whole.
        """
        if not base.files:
            return (), f"from {self.source}"
        if self.change is not None:
            return self._exchange(base, self.change)
        stays = f"row_hash in (select row_hash from {self.source})"
        per_file = self.connection.execute(
            f"select filename, count(*) filter (not {stays}), {SUMS} "
            f"from {scan(base.files, 'filename = true')} group by filename"
        ).fetchall()
        clean = {name: sums for name, gone, *sums in per_file if not gone}
        small = set(small_files(list(clean)))
        clean = {f: clean[f] for f in base.files if f in clean and f not in small}
        query = f"from {self.source}"
        if clean:
            query += f" where row_hash not in (select row_hash from {scan(clean)})"
        (row,) = self.connection.execute(f"select {SUMS} from ({query})").fetchall()
        rows, first, second = (sum(column) for column in zip(row, *clean.values(), strict=True))
        if (rows, digest(first, second)) != (self.rows, self.digest):
            return base.files, f"from {self.source}"
        return tuple(f for f in base.files if f not in clean), query

    def _exchange(self, base: Snapshot, change: Change) -> tuple[tuple[str, ...], str]:
        """Return the same for a table of which the build knows what changed: no row that stays is looked at."""
        found = self.connection.execute(
            f"select distinct filename from {scan(base.files, 'filename = true')} where {change.removed}"
        ).fetchall()
        dirty = {name for (name,) in found}
        dirty.update(small_files([f for f in base.files if f not in dirty]))
        removes = tuple(f for f in base.files if f in dirty)
        query = f"from {change.added}"
        if removes:
            stays = f"select * from {scan(removes, 'union_by_name = true')} where not coalesce({change.removed}, false)"
            query = f"from ({stays} union all by name {query})"
        return removes, query

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        columns = ", ".join(map(identifier, self.table.schema.names))
        yield from self.connection.sql(f"select {columns} {query}").to_arrow_reader(BATCH_ROWS)

    def commit(
        self, parent: int | None, adds: Sequence[NewFile], removes: Sequence[str], is_same_schema: bool
    ) -> Snapshot:
        """Commit on the parent's version, whatever publishers that died or lost have left above it."""
        note = {"run_id": self.build.invocation_id, "contract_version": self.table.contract_version}
        note |= {"git_commit": self.git_commit} if self.git_commit else {}

        def attempt() -> Snapshot:
            find_parent(self.refs, self.build)
            head = snapshot(self.uri)
            assert head is not None
            if parent is not None and is_same_schema:
                # Versions above the parent's are of publishers that died or lost: no release names them.
                base = head if head.version == parent else restore(head, parent, note)
                return commit(base, adds, removes, note)
            # An empty table without a parent needs no commit, else each try would add an empty version.
            is_ready = not adds and not head.files and head.schema.equals(self.table.schema, check_metadata=False)
            return head if is_ready else replace(head, self.table.schema, adds, note)

        return retry_on_conflict(self.uri, attempt)
