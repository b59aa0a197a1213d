"""The logs of exports and runs have each entry once, and no files of entries that somebody else made first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import training.register
from lake.query.query import Lake
from lake.storage.table import CommitConflict, Snapshot, commit, snapshot
from training.register import entry, register


def export_of(lake: Lake) -> Any:
    return entry(
        lake, "exports", export_id="e", table_name="t", release=1, digest="d", contract_version="1.0.0",
        format="jsonl", shards=1, rows=1, path="p", manifest_sha256="0" * 64,
    )  # fmt: skip


def files_and_listed(lake: Lake) -> tuple[set[str], set[str]]:
    """Return the Parquet files in the log's folder, and those of its newest version."""
    uri = lake.paths.table("log", "exports")
    state = snapshot(uri)
    assert state is not None
    return {str(p) for p in Path(uri).glob("*.parquet")}, set(state.files)


def test_who_comes_second_finds_the_entry_and_leaves_no_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(home)
    first: list[bool] = []

    def overtaken(base: Snapshot, *args: Any, **options: Any) -> Snapshot:
        monkeypatch.setattr(training.register, "commit", commit)
        first.append(register(lake, "exports", export_of(lake), {"export_id": "e"}))
        return commit(base, *args, **options)

    monkeypatch.setattr(training.register, "commit", overtaken)
    assert not register(lake, "exports", export_of(lake), {"export_id": "e"}) and first == [True]
    assert lake.sql("select count(*) from log.exports").item() == 1
    files, listed = files_and_listed(lake)
    assert files == listed and len(files) == 1


def test_an_entry_whose_commit_went_through_unheard_keeps_its_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(home)

    def unheard(*args: Any, **options: Any) -> Snapshot:
        commit(*args, **options)
        raise CommitConflict("the answer was lost")

    monkeypatch.setattr(training.register, "commit", unheard)
    register(lake, "exports", export_of(lake), {"export_id": "e"})
    assert lake.sql("select export_id from log.exports").rows() == [("e",)]
    files, listed = files_and_listed(lake)
    assert files == listed and len(files) == 1
