"""The one write path to Delta tables: exact schemas, byte-capped batches, compare-and-swap commits.

delta-rs by itself casts silently (1.7 becomes 1 in an integer column), lets two appends pass each other and forgets
old versions after 30 days. So files are written here, by pyarrow, after the data has been held against the canonical
schema, and committed with `max_commit_retries=0` on the version that was read: whoever finds that version taken
reads again. An append of one row takes some 20 ms on a local disk (tests/bench/bench_publish.py).

    base = create(uri, schema)
    new = write(uri, schema, data)          # nobody sees these files yet
    head = commit(base, new, note={"run_id": "..."})
"""

from __future__ import annotations

import functools
import json
import random
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import pyarrow as pa
import pyarrow.fs
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from lake.errors import BusyError, ContractError, InternalError, NotFoundError
from lake.storage.parquet import NewFile, conform, delete_files, filesystem_of, write

__all__ = [
    "CommitConflict",
    "NewFile",
    "Snapshot",
    "append",
    "check_schema",
    "commit",
    "conform",
    "create",
    "filesystem_of",
    "identity",
    "restore",
    "retry_on_conflict",
    "snapshot",
    "vacuum",
    "write",
]

Result = TypeVar("Result")

MAX_TRIES = 1000  # somebody commits at each of them, so the table is alive; minutes of waiting in all
RETENTION = {
    "delta.logRetentionDuration": "interval 3650 days",
    "delta.deletedFileRetentionDuration": "interval 3650 days",
}


class CommitConflict(Exception):  # noqa: N818  no failure: `retry_on_conflict` reads the table again
    """Somebody committed after the version that was read."""


@dataclass(frozen=True)
class Snapshot:
    """One version of a table.

    Attributes:
        uri: the table's folder or URL.
        version: Delta version.
        files: absolute paths or URLs of its Parquet files, as `read_parquet` takes them.
        schema: Arrow schema of the table.
    """

    uri: str
    version: int
    files: tuple[str, ...]
    schema: pa.Schema

    @functools.cached_property
    def handle(self) -> DeltaTable:
        """The version as delta-rs has it, opened once: opening is most of what a small commit costs."""
        return DeltaTable(self.uri, version=self.version)

    def files_with(self, column: str, values: Iterable[str]) -> list[str]:
        """Return the files that may hold rows with some values, by the minima and maxima in the log.

        Args:
            column: a column of strings.
            values: the values.
        """
        wanted = sorted(values)
        adds = pa.table(self.handle.get_add_actions(flatten=True))
        bounds = [adds[name].to_pylist() for name in (f"min.{column}", f"max.{column}") if name in adds.column_names]
        if len(bounds) < 2:
            return list(self.files)
        names = (path.rsplit("/", 1)[-1] for path in adds["path"].to_pylist())
        excluded = {
            name
            for name, low, high in zip(names, *bounds, strict=True)
            if low is not None and high is not None and bisect_left(wanted, low) == bisect_right(wanted, high)
        }
        return [path for path in self.files if path.rsplit("/", 1)[-1] not in excluded]


def snapshot(uri: str, version: int | None = None) -> Snapshot | None:
    """Read a table's state.

    Args:
        uri: the table's folder or URL.
        version: default the newest.

    Returns:
        The version's files and schema, or None where there is no such table.

    Raises:
        NotFoundError: the table is there and that version is not.
    """
    handle = _open(uri)
    if handle is None:
        return None
    newest = handle.version()
    if version is not None and version != newest:
        if not 0 <= version < newest:
            raise NotFoundError(f"{uri} has versions 0 to {newest}; {version} was asked for.")
        handle.load_as_version(version)
    return _state(uri, handle)


def identity(uri: str) -> str | None:
    """Return Delta's id of a table, drawn when it was made; None where there is no table.

    Args:
        uri: the table's folder or URL.
    """
    handle = _open(uri)
    return None if handle is None else str(handle.metadata().id)


def create(uri: str, schema: pa.Schema) -> Snapshot:
    """Make an empty table if there is none; of several processes one makes it and all get it.

    Args:
        uri: the table's folder or URL.
        schema: canonical Arrow schema (small types).

    Returns:
        The newest version.

    Raises:
        ContractError: a table of another schema lies there.
    """
    existing = snapshot(uri)
    # Not by `retry_on_conflict`: a loser's error is no CommitConflict, and is final where no table lies there after it.
    for _ in range(20):
        if existing is not None:
            check_schema(existing, schema)
            return existing
        try:
            DeltaTable.create(
                uri, schema, mode="ignore", configuration=RETENTION,
                commit_properties=CommitProperties(max_commit_retries=0),
            )  # fmt: skip
        except Exception:
            # Two makers at once: the loser's error has several classes. What lies there decides.
            time.sleep(random.uniform(0.01, 0.1))
            existing = snapshot(uri)
            if existing is None:
                raise
        else:
            existing = snapshot(uri)
    raise InternalError(f"{uri} was created and cannot be opened; look into its _delta_log.")


def commit(
    base: Snapshot, adds: Sequence[NewFile], removes: Sequence[str] = (), note: Mapping[str, str] | None = None
) -> Snapshot:
    """Add and remove files in one commit, if `base` is still the newest version.

    Args:
        base: the version that the change was worked out on.
        adds: files of `write` on the same table.
        removes: files of `base`, as in `base.files`.
        note: facts for the commit's metadata, such as git_commit, contract_version, run_id.

    Returns:
        The new version; `base` itself when there is nothing to change.

    Raises:
        CommitConflict: somebody committed after `base`.
    """
    if not adds and not removes:
        return base
    now = int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = [*_adds(adds)]
    for path in removes:
        if path not in base.files:
            raise InternalError(f"{path} is no file of {base.uri} version {base.version}.")
        actions.append(RemoveAction(path=path.rsplit("/", 1)[-1], data_change=True, deletion_timestamp=now))
    handle = base.handle
    try:
        # mode='append' with the removes beside: mode='overwrite' would remove and add the files that stay, too.
        handle.create_write_transaction(
            actions, mode="append", schema=handle.schema(), commit_properties=_properties(note)
        )
    except CommitFailedError as error:
        if not _is_ours(base, adds):
            raise _conflict(base, error) from error
    gone = set(removes)
    kept = tuple(f for f in base.files if f not in gone)
    return Snapshot(base.uri, base.version + 1, kept + tuple(f.path for f in adds), base.schema)


def append(
    uri: str,
    schema: pa.Schema,
    data: pa.Table | Iterable[pa.RecordBatch],
    note: Mapping[str, str] | None = None,
    base: Snapshot | None = None,
) -> Snapshot:
    """Add rows that stand for themselves, whatever others commit meanwhile.

    Args:
        uri: the table's folder or URL; made if it is not there.
        schema: canonical Arrow schema.
        data: rows.
        note: facts for the commit's metadata.
        base: a version that may be the newest; default the newest, which is then read.

    Returns:
        The version that holds them.

    Raises:
        ContractError: the rows, or the table that lies there, are of another schema.
        BusyError: others committed at every try.
    """
    bases = [base or create(uri, schema)]
    new = write(uri, schema, data)
    try:
        return retry_on_conflict(uri, lambda: commit(bases.pop() if bases else create(uri, schema), new, note=note))
    except BusyError:
        delete_files(new)
        raise


def retry_on_conflict(uri: str, attempt: Callable[[], Result]) -> Result:
    """Call a function until no commit of somebody else comes between its reading and its commit.

    Args:
        uri: the table's folder or URL, for the message.
        attempt: reads the table's newest version, works out the change on it and commits; called again, after a pause
            that is random and grows, each time that it raises CommitConflict.

    Returns:
        What `attempt` returns.

    Raises:
        BusyError: all tries met somebody else's commit.
    """
    for tried in range(MAX_TRIES):
        try:
            return attempt()
        except CommitConflict:
            # Random, so that two writers do not meet again in step.
            time.sleep(random.uniform(0, min(0.02 * 2 ** min(tried, 5), 0.5)))
    raise BusyError(
        f"{uri} took {MAX_TRIES:,} commits of others while one of ours waited; expected a turn between them. "
        "Run it again when less is going on."
    )


def restore(base: Snapshot, version: int, note: Mapping[str, str] | None = None) -> Snapshot:
    """Make the newest version hold exactly the files of an older one, in one commit.

    Args:
        base: the newest version, as it was read.
        version: the version to go back to.
        note: facts for the commit's metadata.

    Raises:
        CommitConflict: somebody committed after `base`.
    """
    handle = DeltaTable(base.uri, version=base.version)
    try:
        handle.restore(version, commit_properties=_properties(note))
    except CommitFailedError as error:
        raise _conflict(base, error) from error
    return _state(base.uri, DeltaTable(base.uri, version=base.version + 1))


def replace(
    base: Snapshot, schema: pa.Schema, adds: Sequence[NewFile], note: Mapping[str, str] | None = None
) -> Snapshot:
    """Put new files of another schema in place of all that there are, in one commit.

    Args:
        base: the newest version, as it was read.
        schema: canonical Arrow schema of the new files.
        adds: files of `write`, none of them in `base`.
        note: facts for the commit's metadata.

    Raises:
        CommitConflict: somebody committed after `base`.
    """
    handle = DeltaTable(base.uri, version=base.version)
    try:
        handle.create_write_transaction(
            _adds(adds), mode="overwrite", schema=Schema.from_arrow(schema), commit_properties=_properties(note)
        )
    except CommitFailedError as error:
        raise _conflict(base, error) from error
    return Snapshot(base.uri, base.version + 1, tuple(f.path for f in adds), schema)


def vacuum(uri: str, keep_versions: Sequence[int], min_age_hours: float = 24, dry_run: bool = False) -> list[str]:
    """Delete the files that no kept version and not the newest one holds.

    Args:
        uri: the table's folder or URL.
        keep_versions: versions whose files stay, beside those of the newest.
        min_age_hours: files younger than this stay, whoever wrote them: they may be about to be committed.
        dry_run: only say which.

    Returns:
        The deleted files, absolute paths or URLs.
    """
    handle = _open(uri)
    if handle is None:
        return []
    kept_files = set(handle.file_uris())
    for version in sorted({*keep_versions} - {handle.version()}):
        kept_files.update(DeltaTable(uri, version=version).file_uris())
    names = {path.rsplit("/", 1)[-1] for path in kept_files}
    # Files that no commit names yet are found by listing: delta-rs' own vacuum knows only those that a commit removed.
    filesystem, folder = filesystem_of(uri)
    limit = datetime.now(UTC).timestamp() - min_age_hours * 3600
    gone = []
    for info in filesystem.get_file_info(pyarrow.fs.FileSelector(folder)):
        is_ours = info.type == pyarrow.fs.FileType.File and info.base_name.endswith(".parquet")
        if is_ours and info.base_name not in names and info.mtime.timestamp() < limit:
            gone.append(info)
    if not dry_run:
        for info in gone:
            filesystem.delete_file(info.path)
    return sorted(f"{uri.rstrip('/')}/{info.base_name}" for info in gone)


def check_schema(stored: Snapshot, expected: pa.Schema) -> None:
    """Refuse a table that has another schema than its contract.

    Args:
        stored: a version of the table.
        expected: canonical Arrow schema.

    Raises:
        ContractError: says which columns differ.
    """
    present = stored.schema
    if not present.equals(expected, check_metadata=False):
        differing = [
            f"{name}: {_described(present, name)} instead of {_described(expected, name)}"
            for name in dict.fromkeys([*expected.names, *present.names])
            if _described(present, name) != _described(expected, name)
        ] or ["the order of the columns"]
        raise ContractError(
            f"{stored.uri} does not have its contract's schema ({'; '.join(differing)}). "
            "Restore the contract, or land and build in another LAKE_HOME."
        )


def _described(schema: pa.Schema, name: str) -> str:
    if name not in schema.names:
        return "absent"
    return f"{schema.field(name).type}{'' if schema.field(name).nullable else ' not null'}"


def _adds(files: Sequence[NewFile]) -> list[AddAction | RemoveAction]:
    now = int(time.time() * 1000)
    return [AddAction(f.name, f.size, {}, now, True, json.dumps(f.stats, ensure_ascii=False)) for f in files]


def _properties(note: Mapping[str, str] | None) -> CommitProperties:
    return CommitProperties(custom_metadata=dict(note or {}) or None, max_commit_retries=0)


def _conflict(base: Snapshot, error: CommitFailedError) -> Exception:
    newest = DeltaTable(base.uri).version()
    if newest > base.version:
        return CommitConflict(f"{base.uri} is at version {newest}; the change was worked out on {base.version}.")
    return InternalError(f"{base.uri} refused a commit on its newest version {newest}: {error}")


def _is_ours(base: Snapshot, adds: Sequence[NewFile]) -> bool:
    """Say whether the commit after `base` is the very one that was refused.

    An object store that loses its answer to a conditional put is asked again, and then says that the object is there.
    Callers delete the files of a commit that lost: these would be the table's own.
    """
    handle = _open(base.uri)
    if not adds or handle is None or handle.version() <= base.version:
        return False
    committed = snapshot(base.uri, base.version + 1)
    return committed is not None and {f.path for f in adds} <= set(committed.files)


def _open(uri: str) -> DeltaTable | None:
    try:
        return DeltaTable(uri)
    except TableNotFoundError:
        return None


def _state(uri: str, handle: DeltaTable) -> Snapshot:
    # Files lie flat; delta-rs itself gives their paths percent-encoded, and a folder "My lake" is then not found.
    files = tuple(f"{uri.rstrip('/')}/{path.rsplit('/', 1)[-1]}" for path in handle.file_uris())
    state = Snapshot(uri, handle.version(), files, pa.schema(handle.schema().to_arrow()))
    state.__dict__["handle"] = handle  # `cached_property` need not open it again
    return state
