"""Publishing: the workspace's tables become new versions of the lake's, and then one file names them all.

A publish is a difference by row hash against the parent release: files whose rows all stay are kept as they are, files
with a row that went are rewritten, new rows go to new files, in one commit of adds and removes per table. So a release
costs what changed: 1,000 new rows beside 200,000 wrote 1,000 (tests/bench/bench_publish.py). Nobody sees anything
before the release's own file is there; a publisher that dies before leaves versions that no release names, and the next
one restores the parent's version first.
"""

from __future__ import annotations

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
from lake.storage.refs import MemoVersion, Refs, Release, TableVersion, check_tag
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
        contents = {t.name: content(connection, identifier("main", t.name)) for t in tables}
        check_emptied(parent, {name: rows for name, (rows, _) in contents.items()}, allow_empty)
        versions, written, commit_id = {}, {}, git_commit(paths.project)
        for table in tables:
            publisher = _Publisher(connection, refs, paths, build, parent, commit_id, table, *contents[table.name])
            versions[table.name], written[table.name] = publisher.publish()
    is_same = parent is not None and dict(parent.tables) == versions
    # Equal digests under equal contracts are the same content: a release of its own would say nothing.
    release = parent if parent and is_same else _release(paths, build, parent, versions, commit_id)
    # Before the release is there: a tag that is taken must not leave a release without the name asked for.
    if tag is not None and not force:
        refs.check_free(tag, release.number)
    if not is_same:
        refs.add(release)
    if tag is not None:
        refs.add_tag(tag, release.number, force)
    return Published(release, not is_same, written)


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
