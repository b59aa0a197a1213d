"""Garbage collection deletes what nothing kept names: nothing young, and nothing while a ref is unreadable."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake.config import lake_paths
from lake.errors import InternalError, UsageError
from lake.query.query import Lake
from lake.releases.gc import collect
from lake.releases.publish import publish
from lake.storage.parquet import filesystem_of
from lake.storage.refs import Refs
from lake.storage.table import append, snapshot
from tests.small_lake import SmallLake, rows


def age(folder: Path, hours: float) -> None:
    """Make every file below a folder as if it had been written long ago."""
    then = time.time() - hours * 3600
    for path in folder.rglob("*"):
        os.utime(path, (then, then))


def files(small: SmallLake) -> set[str]:
    return {str(p) for p in Path(small.paths.home).rglob("*.parquet")}


@pytest.fixture
def small(tmp_path: Path) -> SmallLake:
    """Four releases of which each changes all rows, so that none shares a file with another."""
    made = SmallLake.make(tmp_path)
    for n in range(4):
        made.build(rows(1, 2, text=f"text {n}"))
        publish(made.paths, tag="gold" if n == 1 else None)
    return made


def test_refs_go_first_and_files_in_a_later_run(small: SmallLake) -> None:
    lake, home = Lake(small.paths.home), Path(small.paths.home)
    age(home, 48)
    before = files(small)
    contents = {n: lake.sql("select * from examples", release=n).rows() for n in (2, 3, 4)}
    first = collect(lake.paths, keep_last=2)
    assert (first.releases, first.files) == ([1], []) and files(small) == before
    second = collect(lake.paths, keep_last=2)
    assert second.releases == [] and len(second.files) == 1 and before - files(small) == set(second.files)
    assert {n: lake.sql("select * from examples", release=n).rows() for n in (2, 3, 4)} == contents
    assert lake.refs.numbers() == [2, 3, 4]  # 2 has a tag


def test_no_file_younger_than_a_day_goes(small: SmallLake) -> None:
    lake = Lake(small.paths.home)
    before = files(small)
    age(Path(small.paths.home), 23)
    collect(lake.paths, keep_last=1)
    assert collect(lake.paths, keep_last=1).files == [] and files(small) == before


@pytest.mark.parametrize("place", ["releases/000003.json", "tags/gold.json"])
def test_nothing_goes_while_a_ref_cannot_be_read(small: SmallLake, place: str) -> None:
    home = Path(small.paths.home)
    age(home, 48)
    (home / "refs" / place).write_bytes(b'{"number": 3')
    before = files(small)
    with pytest.raises(InternalError, match=f"refs/{place} cannot be read"):
        collect(lake_paths(home), keep_last=1)
    assert files(small) == before and Lake(home).refs.numbers() == [1, 2, 3, 4]


def test_a_dry_run_says_what_would_go(small: SmallLake) -> None:
    lake = Lake(small.paths.home)
    age(Path(small.paths.home), 48)
    before = files(small)
    assert collect(lake.paths, keep_last=1, dry_run=True).releases == [1, 3]
    assert lake.refs.numbers() == [1, 2, 3, 4] and files(small) == before


def test_files_of_a_publisher_that_died_and_its_draft_go(small: SmallLake) -> None:
    home = Path(small.paths.home)
    stray = home / "tables" / "examples" / "part-0123.parquet"
    stray.write_bytes(b"PAR1")
    draft = home / "refs" / "releases" / ".abc.draft"
    draft.write_bytes(b"{")
    age(home, 48)
    assert collect(lake_paths(home)).files == [str(stray)]
    assert not stray.exists() and not draft.exists()


def test_a_memo_that_no_kept_release_and_not_the_project_uses_goes(small: SmallLake) -> None:
    home = Path(small.paths.home)
    old = home / "memo" / "language" / ("0" * 32)
    append(str(old), pa.schema([("key", pa.string())]), pa.table({"key": ["k"]}))
    assert collect(lake_paths(home)).memos == []  # young
    age(home, 48)
    assert collect(lake_paths(home)).memos == [f"language/{'0' * 32}"]
    assert not old.exists()


class Dying:
    """A file system that dies at its nth deletion."""

    def __init__(self, files: Any, left: int) -> None:
        self.files, self.left = files, left

    def __getattr__(self, name: str) -> Any:
        self.left -= name.startswith("delete")
        if self.left < 0:
            raise KeyboardInterrupt
        return getattr(self.files, name)


def test_a_collector_that_dies_over_a_memo_leaves_a_readable_one_or_none(
    small: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(small.paths.home)
    old = str(home / "memo" / "language" / ("0" * 32))
    schema = pa.schema([("key", pa.string())])
    versions = []
    for deletions in range(5):
        for key in "abc":
            append(old, schema, pa.table({"key": [key]}))
        age(home, 48)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            dying = Dying(filesystem_of(old)[0], deletions)
            patch.setattr("lake.releases.gc.filesystem_of", lambda uri, dying=dying: (dying, uri))
            collect(lake_paths(home))
        left = snapshot(old)
        versions.append(left.version if left else None)
        if left and left.files:
            assert pq.read_table(list(left.files)).num_rows == left.version
        assert collect(lake_paths(home)).memos == [f"language/{'0' * 32}"]
        assert not Path(old).exists()
    assert versions == [3, 2, 1, 0, None]


def test_the_last_release_is_never_given_up(small: SmallLake) -> None:
    with pytest.raises(UsageError, match="expected 1 or more"):
        collect(lake_paths(small.paths.home), keep_last=0)


def test_a_release_that_is_tagged_while_the_collection_runs_stays(
    small: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(small.paths.home)
    age(Path(small.paths.home), 48)
    remove = Refs.remove

    def tag_the_next(refs: Refs, number: int) -> None:
        if number == 1:
            refs.add_tag("late", 3)
        remove(refs, number)

    monkeypatch.setattr(Refs, "remove", tag_the_next)
    assert collect(lake.paths, keep_last=1).releases == [1]
    assert lake.refs.numbers() == [2, 3, 4]
    assert lake.sql("select count(*) from examples", release="late").item() == 2
