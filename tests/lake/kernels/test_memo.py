"""Kernels' results are stored once, for good, and decide nothing but the cost."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake.errors import InternalError
from lake.kernels import memo
from lake.sql import identifier
from lake.storage import table
from lake.storage.views import scan
from tests.effort import examples
from transforms.kernel import Kernel

ROOT = Path(__file__).resolve().parents[3]
WORDS = pa.schema([("text", pa.string())])


def halves(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Half the length of a text; fails on one that is odd."""
    lengths = [len(t) for t in batch.column("text").to_pylist()]
    if any(n % 2 for n in lengths):
        raise ValueError("an odd text")
    return pa.record_batch([pa.array([n // 2 for n in lengths], pa.int64())], names=["half"])


HALVES = Kernel("halves", pa.schema([("text", pa.string())]), pa.schema([("half", pa.int64())]), halves)


def prepare_lengths(words: pa.Table) -> set[int]:
    return {len(word) for word in words.column("word").to_pylist()}


def find_lengths(batch: pa.RecordBatch, lengths: set[int]) -> pa.RecordBatch:
    """Whether a word of the context is as long as the text."""
    return pa.record_batch(
        [pa.array([len(t) in lengths for t in batch.column("text").to_pylist()])], names=["is_there"]
    )


LENGTHS = Kernel("lengths", WORDS, pa.schema([("is_there", pa.bool_())]), find_lengths, prepare_lengths)


@pytest.fixture
def lake(tmp_path: Path) -> str:
    return str(tmp_path / "lake")


def workspace(home: str) -> duckdb.DuckDBPyConnection:
    """What the dbt plugin makes ready, as far as a memo needs it."""
    connection = duckdb.connect()
    connection.execute(
        "create schema _lake; create schema memo; create table _lake.base (home varchar, release integer)"
    )
    connection.execute("insert into _lake.base values (?, null)", [home])
    return connection


def extend(home: str, lengths: Sequence[int]) -> tuple[tuple[int, int, int], list[tuple[str, int]]]:
    """Ask for texts of these lengths; returns the accounts and all that the view then holds."""
    with workspace(home) as session:
        session.execute("create table asked (key varchar, text varchar, example_id varchar)")
        session.execute(
            "insert into asked select 'k' || n, repeat('x', n), 'e' || n from unnest(?::bigint[]) as t (n)",
            [[*lengths]],
        )
        accounts = memo.extend(session, HALVES, session.table("asked")).fetchall()[0][2:]
        return accounts, session.sql("select key, half from memo.halves order by key").fetchall()


def test_a_folder_of_the_lake_that_looks_like_a_partition_changes_no_result(tmp_path: Path) -> None:
    home = str(tmp_path / "key=k2" / "half=9")
    assert extend(home, [2, 4]) == ((2, 2, 0), [("k2", 1), ("k4", 2)])
    assert extend(home, [2, 4, 6]) == ((3, 1, 2), [("k2", 1), ("k4", 2), ("k6", 3)])


def test_only_what_is_missing_is_computed_and_a_key_asked_twice_counts_once(lake: str) -> None:
    assert extend(lake, [2, 4, 4, 2]) == ((2, 2, 0), [("k2", 1), ("k4", 2)])
    assert extend(lake, [4, 6]) == ((2, 1, 1), [("k2", 1), ("k4", 2), ("k6", 3)])
    assert extend(lake, [6, 4]) == ((2, 0, 2), [("k2", 1), ("k4", 2), ("k6", 3)])


def test_the_inputs_of_stored_results_are_not_read(lake: str) -> None:
    extend(lake, [2, 4])
    with workspace(lake) as session:
        unread = "select 'k' || n as key, cast(error('was read') as varchar) as text from unnest([2, 4]) as t (n)"
        assert memo.extend(session, HALVES, unread).fetchall()[0][2:] == (2, 0, 2)


def test_nothing_asked_is_a_typed_empty_view(lake: str) -> None:
    assert extend(lake, []) == ((0, 0, 0), [])


@pytest.mark.integration  # takes seconds
@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.integers(0, 40).map(lambda n: 2 * n), max_size=8), max_size=4))
def test_a_warm_and_an_empty_memo_give_the_same_results_after_any_sequence(
    tmp_path_factory: pytest.TempPathFactory, asked: list[list[int]]
) -> None:
    warm = str(tmp_path_factory.mktemp("warm"))
    for one in asked:
        extend(warm, one)
    everything = [n for one in asked for n in one]
    expected = sorted((f"k{n}", n // 2) for n in set(everything))
    assert extend(warm, everything) == ((len(expected), 0, len(expected)), expected)
    cold = str(tmp_path_factory.mktemp("cold"))
    assert extend(cold, everything) == ((len(expected), len(expected), 0), expected)


def test_deleting_a_memo_changes_cost_and_nothing_else(lake: str) -> None:
    before = extend(lake, [2, 8])
    shutil.rmtree(Path(lake) / "memo")
    assert extend(lake, [2, 8]) == before


def test_many_inputs_of_all_sizes_come_out_whole(lake: str) -> None:
    lengths = [*range(0, 6000, 2), *range(3_000_000, 3_000_040, 2)]
    accounts, rows = extend(lake, lengths)
    assert accounts == (len(lengths), len(lengths), 0)
    assert rows == sorted((f"k{n}", n // 2) for n in lengths)


def test_a_kernel_that_fails_names_the_row_and_what_was_done_before_stays(
    lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memo, "PIECE_BYTES", 1)
    with pytest.raises(InternalError, match=re.escape("on key k7, example_id e7: ValueError('an odd text')")):
        extend(lake, [*range(0, 200, 2), 7])
    found = memo.newest(lake, HALVES)
    assert found is not None
    kept = duckdb.sql(f"select count(*) from {scan(found.files)}").fetchall() if found.files else [(0,)]
    assert extend(lake, range(0, 200, 2))[0] == (100, 100 - kept[0][0], kept[0][0])


def test_a_kernel_that_loses_a_row_is_an_error(lake: str) -> None:
    lossy = Kernel("halves", HALVES.inputs, HALVES.results, lose_a_row)
    with workspace(lake) as session, pytest.raises(InternalError, match="returned 1 rows"):
        memo.extend(session, lossy, "select 'a' as key, 'xx' as text union all select 'b', 'xxxx'")


def lose_a_row(batch: pa.RecordBatch) -> pa.RecordBatch:
    return halves(batch.slice(1)) if batch.num_rows > 1 else halves(batch)


RACER = """
import sys
sys.path.insert(0, {root!r})
from tests.lake.kernels.test_memo import extend
print(extend({home!r}, range(0, 400, 2))[0])
"""


@pytest.mark.integration
def test_builds_that_compute_the_same_at_a_time_store_it_once(lake: str) -> None:
    table.create(f"{lake}/memo/halves/{memo.fingerprint(HALVES)}", memo.stored(HALVES))
    script = RACER.format(root=str(ROOT), home=lake)
    running = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert all(line.startswith(b"(200,") for line in said)
    assert extend(lake, range(0, 400, 2)) == ((200, 0, 200), sorted((f"k{n}", n // 2) for n in range(0, 400, 2)))


def test_a_second_committer_drops_what_the_first_has_stored(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, schema = f"{lake}/memo/halves/x", memo.stored(HALVES)
    base = table.create(uri, schema)

    def rows(*lengths: int) -> pa.RecordBatch:
        return pa.record_batch(
            [[f"k{n}" for n in lengths], ["x"] * len(lengths), [n // 2 for n in lengths]], schema=schema
        )

    memo._append(base, schema, [rows(2, 4)])
    head = memo._append(base, schema, [rows(4, 6)])
    keys = duckdb.sql(f"select key from {scan(head.files)} order by key").fetchall()
    assert keys == [("k2",), ("k4",), ("k6",)]

    def overtaken(newest: table.Snapshot, new: list[table.NewFile]) -> table.Snapshot:
        monkeypatch.setattr(memo, "commit", table.commit)
        table.commit(newest, table.write(uri, schema, [rows(8)]))
        return table.commit(newest, new)

    monkeypatch.setattr(memo, "commit", overtaken)
    head = memo._append(head, schema, [rows(8, 10)])
    assert sorted(head.files) == sorted(map(str, Path(uri).glob("*.parquet")))
    keys = duckdb.sql(f"select key from {scan(head.files)} order by key").fetchall()
    assert keys == [("k10",), ("k2",), ("k4",), ("k6",), ("k8",)]


def test_a_context_is_prepared_and_read_only_where_a_result_is_missing(lake: str) -> None:
    asked = "select 'k' || n as key, repeat('x', n) as text from unnest([1, 2, 3]) as t (n)"
    with workspace(lake) as session:
        words = session.sql("select unnest(['a', 'abc']) as word")
        assert memo.extend(session, LENGTHS, asked, context=words).fetchall()[0][2:] == (3, 3, 0)
        rows = session.sql("select key, is_there from memo.lengths order by key").fetchall()
        assert rows == [("k1", True), ("k2", False), ("k3", True)]
        unread = session.sql("select cast(error('was read') as varchar) as word")
        assert memo.extend(session, LENGTHS, asked, context=unread).fetchall()[0][2:] == (3, 0, 3)


def test_a_context_is_given_to_kernels_that_prepare_one_and_to_no_other(lake: str) -> None:
    asked = "select 'k' as key, 'xx' as text"
    with workspace(lake) as session:
        with pytest.raises(InternalError, match="lengths has prepare and was given no context"):
            memo.extend(session, LENGTHS, asked)
        with pytest.raises(InternalError, match="halves has no prepare and was given a context"):
            memo.extend(session, HALVES, asked, context=session.sql("select 'a' as word"))


def halves_of_first(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([pa.array([len(t) // 2 for t in batch.column(0).to_pylist()])], names=['a "half"'])


def test_columns_with_quotes_in_their_names_are_computed_from_and_stored(lake: str) -> None:
    inputs, results = pa.schema([('the "text"', pa.string())]), pa.schema([('a "half"', pa.int64())])
    kernel = Kernel("halves", inputs, results, halves_of_first)
    names = ['an "id"']
    with workspace(lake) as session:
        asked = f"select 'k' as key, 'xxxx' as {identifier(inputs.names[0])}, 'e' as {identifier(*names)}"
        assert memo.extend(session, kernel, asked).fetchall()[0][2:] == (1, 1, 0)
        assert session.sql("from memo.halves").fetchall() == [("k", memo.fingerprint(kernel), 2)]
