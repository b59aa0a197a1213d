"""What `lake.storage.table` promises: exact schemas, invisible files before the commit, compare-and-swap."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import BusyError, ContractError, NotFoundError
from lake.storage import parquet, table
from tests.effort import examples

SCHEMA = pa.schema(
    [
        pa.field("row_id", pa.string(), nullable=False),
        pa.field("n", pa.int64()),
        pa.field("messages", pa.list_(pa.struct([pa.field("role", pa.string()), pa.field("content", pa.string())]))),
    ]
)


def rows(*ids: str) -> pa.Table:
    return pa.table({"row_id": list(ids), "n": [len(i) for i in ids], "messages": [None for _ in ids]}, schema=SCHEMA)


def ids(state: table.Snapshot) -> list[str]:
    if not state.files:
        return []
    return [r[0] for r in duckdb.sql(f"select row_id from read_parquet({list(state.files)}) order by 1").fetchall()]


def test_written_files_are_invisible_until_they_are_committed(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    base = table.create(uri, SCHEMA)
    new = table.write(uri, SCHEMA, rows("a", "b"))
    assert table.snapshot(uri) == base
    head = table.commit(base, new, note={"git_commit": "abc", "run_id": "7"})
    assert (ids(head), head.version) == (["a", "b"], 1)
    assert table.snapshot(uri) == head
    entry = [
        json.loads(line) for line in (tmp_path / "t/_delta_log/00000000000000000001.json").read_text().splitlines()
    ]
    info = next(e["commitInfo"] for e in entry if "commitInfo" in e)
    assert (info["git_commit"], info["run_id"]) == ("abc", "7")
    stats = json.loads(next(e["add"] for e in entry if "add" in e)["stats"])
    assert stats["numRecords"] == 2
    assert (stats["minValues"]["row_id"], stats["maxValues"]["row_id"], stats["nullCount"]["row_id"]) == ("a", "b", 0)


SOURCES = st.text("ab\uffff\U0001f600", max_size=4) | st.sampled_from(["a" * 64, "b" * 65, "\U0001f600" * 17])


@settings(max_examples=examples(30))
@given(
    commits=st.lists(st.lists(SOURCES, min_size=1, max_size=4), max_size=8),
    values=st.lists(st.text("ab\uffff\U0001f600", max_size=3), max_size=4),
    joined=st.booleans(),
)
def test_files_that_statistics_exclude_hold_none_of_the_values(
    tmp_path_factory: pytest.TempPathFactory, commits: list[list[str]], values: list[str], joined: bool
) -> None:
    """Statistics of texts above 64 bytes are left out of the log."""
    schema = pa.schema([pa.field("source", pa.string(), nullable=False)])
    uri = str(tmp_path_factory.mktemp("t"))
    state = table.create(uri, schema)
    held: dict[str, list[str]] = {}
    for sources in commits:
        new = table.write(uri, schema, pa.table({"source": sources}, schema=schema))
        held[new[0].path] = sources
        state = table.commit(state, new)
    if joined and held:
        new = table.write(uri, schema, parquet.read_batches(state.files))
        state = table.commit(state, new, removes=state.files)
        held = {new[0].path: [source for sources in commits for source in sources]}
    kept = state.files_with("source", values)
    assert set(kept) <= set(state.files) == set(held)
    for path, sources in held.items():
        low, high = min(sources), max(sources)
        if len(low.encode()) <= 64 and len(high.encode()) <= 64:
            assert (path in kept) == any(low <= value <= high for value in values)
        else:
            assert path in kept


def test_a_version_without_statistics_excludes_no_file(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    state = table.append(uri, SCHEMA, rows("a", "b"))
    assert state.files_with("messages", ["z"]) == list(state.files)
    assert state.files_with("row_id", ["z"]) == []
    assert table.create(str(tmp_path / "empty"), SCHEMA).files_with("row_id", ["z"]) == []


def test_no_table_is_none_and_no_version_is_an_error(tmp_path: Path) -> None:
    assert table.snapshot(str(tmp_path / "none")) is None
    table.create(str(tmp_path / "t"), SCHEMA)
    with pytest.raises(NotFoundError, match="versions 0 to 0; 3"):
        table.snapshot(str(tmp_path / "t"), 3)


def test_versions_outlive_thirty_days(tmp_path: Path) -> None:
    table.create(str(tmp_path / "t"), SCHEMA)
    log = (tmp_path / "t/_delta_log/00000000000000000000.json").read_text()
    meta = next(json.loads(line)["metaData"] for line in log.splitlines() if "metaData" in line)
    assert meta["configuration"]["delta.logRetentionDuration"] == "interval 3650 days"
    assert meta["configuration"]["delta.deletedFileRetentionDuration"] == "interval 3650 days"


def test_one_commit_adds_and_removes(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    first = table.append(uri, SCHEMA, rows("a"))
    second = table.append(uri, SCHEMA, rows("b"))
    third = table.commit(second, table.write(uri, SCHEMA, rows("c")), removes=first.files)
    assert (ids(third), third.version) == (["b", "c"], second.version + 1)
    assert ids(table.snapshot(uri, first.version)) == ["a"]  # type: ignore[arg-type]


def test_restore_gives_back_an_older_version_in_one_commit(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    first = table.append(uri, SCHEMA, rows("a"))
    second = table.append(uri, SCHEMA, rows("b"))
    third = table.restore(second, first.version)
    assert (ids(third), third.version) == (["a"], second.version + 1)
    with pytest.raises(table.CommitConflict):
        table.restore(second, first.version)


def test_a_commit_on_an_old_version_is_a_conflict(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    base = table.create(uri, SCHEMA)
    table.append(uri, SCHEMA, rows("a"))
    with pytest.raises(table.CommitConflict):
        table.commit(base, table.write(uri, SCHEMA, rows("b")))
    assert ids(table.snapshot(uri)) == ["a"]  # type: ignore[arg-type]


def test_a_commit_whose_answer_was_lost_is_no_conflict_when_it_is_tried_again(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    base = table.create(uri, SCHEMA)
    new = table.write(uri, SCHEMA, rows("a"))
    first = table.commit(base, new)
    assert table.commit(base, new) == first
    table.append(uri, SCHEMA, rows("b"))
    assert table.commit(base, new) == first
    assert ids(table.snapshot(uri)) == ["a", "b"]  # type: ignore[arg-type]


COMPETE = """
import sys, time, pyarrow as pa
from pathlib import Path
from lake.storage import table
uri, name, gate = sys.argv[1:]
schema = pa.schema([pa.field("row_id", pa.string(), nullable=False)])
base = table.create(uri, schema)
new = table.write(uri, schema, pa.table({"row_id": [name]}, schema=schema))
Path(gate + name).touch()
while not Path(gate).exists():
    time.sleep(0.001)
try:
    table.commit(base, new)
    print("won")
except table.CommitConflict:
    print("conflict")
"""


@pytest.mark.integration
def test_of_two_processes_on_one_version_one_wins_and_one_conflicts(tmp_path: Path) -> None:
    uri, gate = str(tmp_path / "t"), str(tmp_path / "gate")
    table.create(uri, pa.schema([pa.field("row_id", pa.string(), nullable=False)]))
    call = [sys.executable, "-c", COMPETE, uri]
    racers = [subprocess.Popen([*call, n, gate], stdout=subprocess.PIPE, text=True, env=os.environ) for n in "ab"]
    while not all(Path(gate + n).exists() for n in "ab"):
        assert all(r.poll() is None for r in racers)
        time.sleep(0.01)
    Path(gate).touch()
    outcomes = [r.communicate(timeout=60)[0].strip() for r in racers]
    assert sorted(outcomes) == ["conflict", "won"]
    assert ids(table.snapshot(uri)) == ["ab"[outcomes.index("won")]]  # type: ignore[arg-type]


APPEND = """
import sys, pyarrow as pa
from lake.storage import table
uri, name = sys.argv[1:]
schema = pa.schema([pa.field("row_id", pa.string(), nullable=False)])
for i in range(6):
    table.append(uri, schema, pa.table({"row_id": [f"{name}{i}"]}, schema=schema))
"""


@pytest.mark.integration
def test_appends_of_four_processes_to_a_new_table_all_land(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    racers = [subprocess.Popen([sys.executable, "-c", APPEND, uri, n], env=os.environ) for n in "abcd"]
    assert [r.wait(timeout=120) for r in racers] == [0, 0, 0, 0]
    assert ids(table.snapshot(uri)) == [f"{n}{i}" for n in "abcd" for i in range(6)]  # type: ignore[arg-type]


def test_an_append_that_gets_no_turn_says_so_and_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, commit = str(tmp_path / "t"), table.commit
    table.create(uri, SCHEMA)

    def overtaken(base: table.Snapshot, adds: list[parquet.NewFile], **note: dict[str, str]) -> table.Snapshot:
        commit(base, table.write(uri, SCHEMA, rows("other")))
        return commit(base, adds)

    monkeypatch.setattr(table, "MAX_TRIES", 2)
    monkeypatch.setattr(table, "commit", overtaken)
    with pytest.raises(BusyError, match="took 2 commits of others"):
        table.append(uri, SCHEMA, rows("ours"))
    head = table.snapshot(uri)
    assert head is not None and sorted(head.files) == sorted(map(str, (tmp_path / "t").glob("*.parquet")))
    assert ids(head) == ["other", "other"]


def test_large_types_become_small_ones_with_equal_values(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    frame = pl.DataFrame(
        {"row_id": ["a", "b"], "n": [1, None], "messages": [[{"role": "user", "content": "x"}], None]},
        schema_overrides={"n": pl.Int64},
    )
    data = frame.to_arrow()
    assert pa.types.is_large_string(data.schema.field("row_id").type)
    head = table.append(uri, SCHEMA, data)
    read = duckdb.sql(f"select * from read_parquet({list(head.files)}) order by 1").to_arrow_table()
    assert read.schema.field("row_id").type == pa.string()
    assert read.to_pylist() == frame.to_dicts()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            pa.table({"row_id": ["a"], "n": [1.0], "messages": [None]}),
            "column 'n' has type double; the contract has int64",
        ),
        (pa.table({"row_id": ["a"], "n": ["1"], "messages": [None]}), "column 'n' has type string"),
        (pa.table({"row_id": ["a"], "n": [1]}), "missing \\['messages'\\]"),
        (pa.table({"n": [1], "row_id": ["a"], "messages": [None]}), "in this order"),
        (pa.table({"row_id": ["a", None], "n": [1, 2], "messages": [None, None]}), "'row_id' is null in 1 of 2 rows"),
        (pa.table({"row_id": ["a"], "n": [1], "messages": [[{"role": "x"}]]}), "column 'messages' has type"),
    ],
)
def test_what_does_not_match_exactly_is_refused(tmp_path: Path, data: pa.Table, said: str) -> None:
    with pytest.raises(ContractError, match=said):
        table.append(str(tmp_path / "t"), SCHEMA, data)
    assert not list((tmp_path / "t").glob("*.parquet")) or table.snapshot(str(tmp_path / "t")).files == ()  # type: ignore[union-attr]


def test_a_table_of_another_schema_is_refused(tmp_path: Path) -> None:
    table.create(str(tmp_path / "t"), SCHEMA)
    with pytest.raises(ContractError, match="n: int64 instead of absent"):
        table.create(str(tmp_path / "t"), SCHEMA.remove(1))


def test_batches_are_cut_to_the_byte_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_BYTES", 1000)
    monkeypatch.setattr(parquet, "FILE_BYTES", 4000)
    data = rows(*(f"{i:03d}" + "x" * 97 for i in range(100)))
    head = table.append(str(tmp_path / "t"), SCHEMA, data)
    assert len(head.files) > 2
    sizes = duckdb.sql(f"select max(row_group_num_rows) from parquet_metadata({list(head.files)})").fetchall()
    assert sizes[0][0] <= 10
    assert ids(head) == data["row_id"].to_pylist()


def test_vacuum_keeps_named_versions_and_young_files(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    first = table.append(uri, SCHEMA, rows("a"))
    second = table.commit(first, table.write(uri, SCHEMA, rows("b")), removes=first.files)
    third = table.commit(second, table.write(uri, SCHEMA, rows("c")), removes=second.files)
    pending = table.write(uri, SCHEMA, rows("d"))
    assert table.vacuum(uri, [first.version]) == []  # all are younger than a day
    for file in (*first.files, *second.files, *third.files):
        os.utime(file, (time.time() - 90_000,) * 2)
    assert table.vacuum(uri, [first.version], dry_run=True) == list(second.files)
    assert table.vacuum(uri, [first.version]) == list(second.files)
    assert ids(table.snapshot(uri, first.version)) == ["a"]  # type: ignore[arg-type]
    assert ids(table.commit(third, pending)) == ["c", "d"]
