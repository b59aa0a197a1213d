"""What another landing commits while ours is under way is found at the commit, and nothing is there twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lake.errors import BusyError, SourceError
from lake.landing import commits
from lake.landing.land import Summary, land
from lake.storage import table
from tests.lake.landing.landed import content, rows


def chat(text: str) -> str:
    return json.dumps({"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]})


def write(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines))
    return path


def before_first(monkeypatch: pytest.MonkeyPatch, name: str, uri: str, other: Callable[[], Any]) -> None:
    """Have something happen just before the first call of a function of `table` for one table."""
    function = getattr(table, name)

    def patched(first: Any, *args: Any, **keywords: Any) -> Any:
        if getattr(first, "uri", first) == uri:
            monkeypatch.setattr(table, name, function)
            other()
        return function(first, *args, **keywords)

    monkeypatch.setattr(table, name, patched)


def counts(summary: Summary) -> tuple[int, int, int, int, int]:
    return summary.read, summary.landed, summary.already, summary.rejected, summary.skipped


LINES = [chat("a"), "{broken", chat("b"), "", chat("c"), "[1,]"]


# Another landing comes between our look at the records' table and that at the rejects', before the commit of our
# records, or before that of our rejects.
@pytest.mark.parametrize(("moment", "name"), [("snapshot", "rejects"), ("commit", "traces"), ("commit", "rejects")])
def test_a_file_that_another_landing_commits_meanwhile_is_there_once(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, name: str
) -> None:
    file = write(tmp_path / "in" / "x.jsonl", LINES)
    land([file], "traces", "s", home=tmp_path / "alone")
    land([write(tmp_path / "other" / "y.jsonl", [chat("of another source")])], "traces", "t")
    others: list[Summary] = []
    before_first(monkeypatch, moment, f"{home}/raw/{name}", lambda: others.append(land([file], "traces", "s")))
    ours = land([file], "traces", "s")
    other = counts(others[0])
    # Where our records were committed first, the other landing finds them, and only the rejects are new to it.
    landed_by_other = (6, 3, 0, 2, 1) if (moment, name) != ("commit", "rejects") else (6, 0, 3, 2, 1)
    assert other == landed_by_other
    assert counts(ours) == (6, 3 - other[1], 2 + other[1], 0, 1)
    assert rows(home, "landings", "landed + already + rejected", "source = 's'") == [(5,), (5,)]
    mine = [[row for row in part if row[1] == "s"] for part in content(home, "traces")]
    assert mine == list(content(tmp_path / "alone", "traces"))


def test_of_a_file_that_another_landing_has_begun_the_rest_lands(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ids of the open file are looked up again: the other may have landed what is still to come."""
    monkeypatch.setattr("lake.landing.loader.BATCH_BYTES", 600)
    monkeypatch.setattr("lake.landing.containers.CHUNK", 400)
    lines = [chat(f"{n:04d}") for n in range(40)]
    file = write(tmp_path / "in" / "x.jsonl", lines)
    half = write(tmp_path / "half" / "x.jsonl", lines[:30])
    land([write(tmp_path / "other" / "y.jsonl", [chat("of another source")])], "traces", "t")
    before_first(
        monkeypatch, "commit", f"{home}/raw/traces", lambda: land([half], "traces", "s", root=tmp_path / "half")
    )
    assert counts(land([file], "traces", "s", root=tmp_path / "in")) == (40, 10, 30, 0, 0)
    assert len(rows(home, "traces", "record_id", "source = 's'")) == 40


def test_a_landing_that_died_between_records_and_rejects_is_completed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new rejects of a known file say nothing of the records behind them: these are there."""
    monkeypatch.setattr("lake.landing.loader.LOOKUP_BYTES", 1)
    monkeypatch.setattr("lake.landing.containers.CHUNK", 300)
    lines = [chat(f"{n:04d}") if n % 5 else f"{{broken {n}" for n in range(40)]
    file = write(tmp_path / "in" / "x.jsonl", lines)

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(commits.Committer, "_commit_rejects", die)
        with pytest.raises(KeyboardInterrupt):
            land([file], "traces", "s")
    assert (len(rows(home, "traces")), rows(home, "rejects")) == (32, [])
    assert counts(land([file], "traces", "s")) == (40, 0, 32, 8, 0)
    land([file], "traces", "s", home=tmp_path / "alone")
    assert content(home, "traces") == content(tmp_path / "alone", "traces")


def parquet_files(home: Path, name: str) -> set[Path]:
    return set((home / "raw" / name).glob("*.parquet"))


def test_a_landing_that_stops_leaves_no_file_and_no_thread_behind(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in"
    write(folder / "a.jsonl", [chat("a")])
    land([folder], "traces", "s", license="MIT")
    before, threads = parquet_files(home, "traces"), threading.active_count()
    monkeypatch.setattr("lake.storage.parquet.GROUP_ROWS", 1)  # so that the file is there before the landing stops
    # The new file's records are written before those of the known one are found to differ: at the lookup, ...
    write(folder / "0.jsonl", [chat("new"), chat("too")])
    write(folder / "a.jsonl", [chat("a"), chat("tail")])
    monkeypatch.setattr("lake.landing.loader.LOOKUP_BYTES", 1)
    with pytest.raises(SourceError, match="MIT"):
        land([folder], "traces", "s", license="CC0-1.0")
    assert (parquet_files(home, "traces"), threading.active_count()) == (before, threads)
    # ... or at the commit, where another landing came first.
    write(folder / "0.jsonl", [chat("newer")])
    (folder / "a.jsonl").unlink()
    before_first(monkeypatch, "commit", f"{home}/raw/traces", lambda: land([folder], "traces", "s", license="MIT"))
    with pytest.raises(SourceError, match="MIT"):
        land([folder], "traces", "s", license="CC0-1.0")
    state = table.snapshot(f"{home}/raw/traces")
    assert state is not None
    assert parquet_files(home, "traces") == {Path(f) for f in state.files}


@pytest.mark.parametrize("name", ["traces", "rejects"])
def test_a_landing_that_others_never_let_commit_leaves_no_file_behind(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file = write(tmp_path / "in" / "x.jsonl", LINES)
    commit = table.commit

    def conflict(base: table.Snapshot, *args: Any, **keywords: Any) -> table.Snapshot:
        if base.uri == f"{home}/raw/{name}":
            raise table.CommitConflict
        return commit(base, *args, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(table, "commit", conflict)
        patch.setattr(table, "MAX_TRIES", 2)
        with pytest.raises(BusyError):
            land([file], "traces", "s")
    assert parquet_files(home, name) == set()
    assert land([file], "traces", "s").rejected == 2
    assert len(rows(home, "traces")) == 3


def test_files_that_may_be_committed_stay(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection breaks after the commit: to delete its files would break the table."""
    file = write(tmp_path / "in" / "x.jsonl", LINES)
    commit = table.commit

    def lose_connection(*args: Any, **keywords: Any) -> table.Snapshot:
        commit(*args, **keywords)
        raise OSError("connection lost")

    with monkeypatch.context() as patch:
        patch.setattr(table, "commit", lose_connection)
        with pytest.raises(OSError, match="connection lost"):
            land([file], "traces", "s")
    assert len(rows(home, "traces")) == 3


@pytest.mark.parametrize("broken", ["lake.storage.table.write", "lake.landing.batches.delete_files"])
def test_the_error_that_stops_a_landing_is_not_hidden_by_one_of_its_cleaning_up(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    file = write(tmp_path / "in" / "x.jsonl", [chat("a")])
    monkeypatch.setattr("lake.landing.loader.LOOKUP_BYTES", 1)  # so that records are written before the file ends

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(broken, fail)
    monkeypatch.setattr("lake.landing.loader.Loader.end", interrupt)
    with pytest.raises(KeyboardInterrupt):
        land([file], "traces", "s")


def test_rejects_of_many_bytes_are_written_in_batches_of_their_own(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    write_table = table.write

    def counted(uri: str, schema: Any, data: Any) -> Any:
        if not uri.endswith("/rejects"):
            return write_table(uri, schema, data)
        batches = list(data)
        sizes.extend(batch.num_rows for batch in batches)
        return write_table(uri, schema, iter(batches))

    monkeypatch.setattr(table, "write", counted)
    monkeypatch.setattr(commits, "REJECTS_BYTES", 100)
    file = write(tmp_path / "in" / "x.jsonl", [chat("a"), *("{" + "x" * 39 for _ in range(5)), "{" + "y" * 300, "{"])
    assert counts(land([file], "traces", "s")) == (8, 1, 0, 7, 0)
    assert sizes == [2, 2, 1, 1, 1]
    assert len(rows(home, "rejects")) == 7
