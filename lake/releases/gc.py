"""Garbage collection: what no kept release or tag names goes, slowly and never by surprise.

Releases beyond the last N go first, and the files that only they held in a later run: whoever reads a release that has
just gone still reads to the end. A file younger than 24 hours stays whoever wrote it, since it may be about to be
committed. If any ref cannot be read, nothing goes.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow.fs

from lake.config import LakePaths
from lake.errors import UsageError
from lake.storage.parquet import filesystem_of
from lake.storage.refs import Refs, Release
from lake.storage.table import vacuum

MIN_AGE_HOURS = 24.0


@dataclass(frozen=True)
class Collected:
    """What a run deleted, or would delete.

    Attributes:
        releases: numbers of releases whose files went.
        files: Parquet files that no kept version holds.
        memos: folders of memos, as kernel/fingerprint, that no kept release and not the present project uses.
        is_dry_run: nothing was deleted.
    """

    releases: list[int] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    memos: list[str] = field(default_factory=list)
    is_dry_run: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as a plain object."""
        return asdict(self)

    def as_text(self) -> str:
        """Return it as lines."""
        verb = "would delete" if self.is_dry_run else "deleted"
        kept = "" if not self.releases else "; the files that only these held go in a later run"
        return (
            f"{verb} {len(self.releases)} releases{kept}\n"
            f"{verb} {len(self.files)} files of tables and {len(self.memos)} memos"
        )


def collect(paths: LakePaths, keep_last: int | None = None, dry_run: bool = False) -> Collected:
    """Delete what no kept release names.

    Args:
        paths: of the lake and the project.
        keep_last: releases to keep, beside those with a tag; None keeps all.
        dry_run: delete nothing.

    Returns:
        What went; files that only releases of this run held go in a later one.

    Raises:
        UsageError: keep_last is below 1.
        InternalError: a release or tag cannot be read; nothing was deleted.
    """
    if keep_last is not None and keep_last < 1:
        raise UsageError(f"--keep-last {keep_last} would delete the last release; expected 1 or more.")
    refs = Refs(paths.home)
    releases, tags = refs.all(), refs.tags()
    # Reading every ref first: one that cannot be read may name what would be deleted.
    for number in tags.values():
        refs.load(number)
    spare = releases[: -keep_last if keep_last else 0]
    going = [r.number for r in spare if r.number not in tags.values()]
    if not dry_run:
        for number in list(going):
            if number in refs.tags().values():  # tagged since this run began
                going.remove(number)
            else:
                refs.remove(number)
        refs.clear_drafts(MIN_AGE_HOURS)
    # `releases` still holds those that just went, so their files stay for this run.
    memos = _memos(paths, releases, dry_run)
    return Collected(going, _files(paths, releases, dry_run), memos, dry_run)


def _files(paths: LakePaths, releases: list[Release], dry_run: bool) -> list[str]:
    """Delete files that no kept version holds: of published tables, raw tables, logs and memos."""
    gone = []
    for name in _children(paths.table("tables")):
        versions = [r.tables[name].version for r in releases if name in r.tables]
        gone += vacuum(paths.table("tables", name), versions, MIN_AGE_HOURS, dry_run)
    for name in _children(paths.table("raw")):
        versions = [v for r in releases if (v := r.raw_pins.get(name)) is not None]
        gone += vacuum(paths.table("raw", name), versions, MIN_AGE_HOURS, dry_run)
    # No release pins log tables: their newest version counts.
    for name in _children(paths.table("log")):
        gone += vacuum(paths.table("log", name), [], MIN_AGE_HOURS, dry_run)
    for kernel in _children(paths.table("memo")):
        for mark in _children(paths.table("memo", kernel)):
            named = [r.memos[kernel] for r in releases if kernel in r.memos]
            versions = [m.version for m in named if m.fingerprint == mark and m.version is not None]
            gone += vacuum(paths.table("memo", kernel, mark), versions, MIN_AGE_HOURS, dry_run)
    return gone


def _memos(paths: LakePaths, releases: list[Release], dry_run: bool) -> list[str]:
    """Delete memos of fingerprints that neither a kept release nor the project as it stands uses."""
    from lake.kernels import memo, project

    used = {(name, m.fingerprint) for r in releases for name, m in r.memos.items()}
    used |= {(name, memo.fingerprint(kernel)) for name, kernel in project.kernels(paths.project).items()}
    gone = []
    for kernel in _children(paths.table("memo")):
        for mark in _children(paths.table("memo", kernel)):
            uri = paths.table("memo", kernel, mark)
            if (kernel, mark) not in used and _youngest_hours(uri) > MIN_AGE_HOURS:
                gone.append(f"{kernel}/{mark}")
                if not dry_run:
                    _delete(uri)
    return gone


def _delete(uri: str) -> None:
    """Delete a table, its log first and from its end: killed at any moment, it leaves an older version or no table."""
    files, folder = filesystem_of(uri)
    log = files.get_file_info(pyarrow.fs.FileSelector(f"{folder}/_delta_log", allow_not_found=True))
    for info in sorted(log, key=lambda f: f.base_name, reverse=True):
        files.delete_file(info.path)
    files.delete_dir(folder)


def _children(uri: str) -> list[str]:
    """Return the folders below a place, sorted; none where it is not there."""
    files, folder = filesystem_of(uri)
    entries = files.get_file_info(pyarrow.fs.FileSelector(folder, allow_not_found=True))
    return sorted(f.base_name for f in entries if f.type == pyarrow.fs.FileType.Directory)


def _youngest_hours(uri: str) -> float:
    """Return the age of the youngest file below a place: a build on another branch may be filling it."""
    files, folder = filesystem_of(uri)
    entries = files.get_file_info(pyarrow.fs.FileSelector(folder, recursive=True, allow_not_found=True))
    times = [f.mtime.timestamp() for f in entries if f.type == pyarrow.fs.FileType.File]
    return (time.time() - max(times, default=0.0)) / 3600
