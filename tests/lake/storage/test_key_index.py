"""Keys found through the index of a file are those that a look at every row finds, whatever has become of the index."""

from __future__ import annotations

import random
from pathlib import Path
from unittest.mock import patch

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.storage import key_index, parquet
from lake.storage.key_index import BLOCK, Hits, look_up, prefixes
from lake.storage.lookup import find_rows, may_have
from lake.storage.parquet import write
from tests.effort import examples

COLUMNS = pa.schema([pa.field("record_id", pa.string(), nullable=False), pa.field("license", pa.string())])

# Few first halves and few second ones: many keys share the bits that the index holds.
halves = st.sampled_from(["0" * 16, "0" * 15 + "1", "7" + "a" * 15, "f" * 16])
near_keys = st.builds(lambda a, b: a + b, halves, halves)
far_keys = st.integers(0, 2**128 - 1).map(lambda n: f"{n:032x}")
keys = st.one_of(near_keys, far_keys)
other_keys = st.sampled_from(["", "short", "F" * 32, "é" * 16, "0" * 33, "0" * 31 + "g"])  # no hashes


def table_of(ids: list[str]) -> pa.Table:
    return pa.table({"record_id": ids, "license": [f"of {x}" for x in ids]}, schema=COLUMNS)


def random_keys(count: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    return [f"{draw.getrandbits(128):032x}" for _ in range(count)]


def written(uri: str, ids: list[str], group_rows: int) -> str:
    with patch.object(parquet, "GROUP_ROWS", group_rows):
        return write(uri, COLUMNS, table_of(ids))[0].path


def hits(path: str, wanted: list[str]) -> Hits | None:
    data = Path(path).read_bytes()
    found = prefixes(pa.array(wanted, pa.string()))
    assert found is not None
    return look_up(lambda size, offset: data[offset : offset + size], len(data), found)


def place_of_index(data: bytes) -> tuple[int, int]:
    """Return where the index of a file begins and ends: it is what no column lies in before the footer."""
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    metadata = pq.ParquetFile(pa.BufferReader(data)).metadata
    chunks = [metadata.row_group(g).column(c) for g in range(metadata.num_row_groups) for c in range(2)]
    starts = [min(filter(None, (c.dictionary_page_offset, c.data_page_offset))) for c in chunks]
    return max(s + c.total_compressed_size for s, c in zip(starts, chunks, strict=True)), end


def check_found(path: str, there: list[str], wanted: list[str]) -> None:
    truth = sorted(set(there) & set(wanted))
    rows = find_rows([path], ["record_id", "license"], "record_id", wanted)
    assert sorted(rows["record_id"].to_pylist()) == truth
    assert sorted(rows["license"].to_pylist()) == [f"of {x}" for x in truth]
    possible = may_have([path], "record_id", wanted)
    assert set(truth) <= possible <= set(wanted)


@pytest.mark.parametrize("where", ["local", "memory"])
@settings(max_examples=examples(60))
@given(
    there=st.lists(st.one_of(keys, st.one_of(keys, other_keys)), min_size=1, max_size=200, unique=True),
    absent=st.lists(st.one_of(keys, other_keys), max_size=40),
    group_rows=st.integers(1, 200),
    seed=st.integers(0, 100),
)
def test_keys_are_found_as_by_a_look_at_every_row(
    where: str,
    tmp_path_factory: pytest.TempPathFactory,
    there: list[str],
    absent: list[str],
    group_rows: int,
    seed: int,
) -> None:
    uri = str(tmp_path_factory.mktemp("t")) if where == "local" else "memory://test_key_index"
    path = written(uri, there, group_rows)
    known = random.Random(seed).sample(there, min(len(there), 5))
    for wanted in ([], known, absent, known + absent, there):
        check_found(path, there, wanted)


@settings(max_examples=examples(20))
@given(count=st.integers(1, 1000), group_rows=st.integers(1, 400), seed=st.integers(0, 1000))
def test_an_index_says_which_keys_lie_in_which_row_groups(
    tmp_path_factory: pytest.TempPathFactory, count: int, group_rows: int, seed: int
) -> None:
    """A file without an index, or with one that is never read, would give the same rows, slowly."""
    there = random_keys(count, seed)
    path = written(str(tmp_path_factory.mktemp("t")), there, group_rows)
    file = pq.ParquetFile(path)
    groups = [file.read_row_group(g)["record_id"].to_pylist() for g in range(file.num_row_groups)]
    wanted = sorted([*there[:: max(count // 7, 1)], *random_keys(50, seed + 1001)])
    expected = Hits(
        [n for n, x in enumerate(wanted) if x in there],
        [n for n, group in enumerate(groups) if set(group) & set(wanted)],
    )
    assert hits(path, wanted) == expected


@settings(max_examples=examples(150))
@given(
    count=st.integers(1, 300),
    group_rows=st.integers(1, 100),
    place=st.floats(0, 1, exclude_max=True),
    length=st.integers(1, 2000),
    byte=st.one_of(st.sampled_from([0, 255]), st.integers(0, 255)),
    seed=st.integers(0, 1000),
)
def test_a_damaged_index_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    count: int,
    group_rows: int,
    place: float,
    length: int,
    byte: int,
    seed: int,
) -> None:
    there = random_keys(count, seed)
    path = written(str(tmp_path_factory.mktemp("t")), there, group_rows)
    data = bytearray(Path(path).read_bytes())
    begin, end = place_of_index(bytes(data))
    first = begin + int(place * (end - begin))
    last = min(first + length, end)
    data[first:last] = bytes([byte]) * (last - first)
    Path(path).write_bytes(data)
    check_found(path, there, [*there, *random_keys(20, seed + 1001)])
    check_found(path, there, there[:3])


@pytest.mark.parametrize("byte", [0, 255])
def test_every_key_is_found_or_the_index_disowned_wherever_it_is_overwritten(tmp_path: Path, byte: int) -> None:
    """Of 640 keys each is asked for alone, so that most searches end far from the damage and some come by it."""
    there = random_keys(10 * BLOCK)
    path = Path(written(str(tmp_path), there, 100))
    intact = path.read_bytes()
    begin, end = place_of_index(intact)
    begin += -begin % 8
    blocks = [(begin + n * 8 * BLOCK, begin + (n + 1) * 8 * BLOCK) for n in range(10)]
    all_but_groups = (begin, end - 16 - 2 * len(there))
    for first, last in [*blocks, all_but_groups]:
        path.write_bytes(intact[:first] + bytes([byte]) * (last - first) + intact[last:])
        answers = [hits(str(path), [key]) for key in there]
        assert all(answer is None or answer.keys == [0] for answer in answers)
    path.write_bytes(intact)
    assert None not in [hits(str(path), [key]) for key in there]


def test_keys_between_others_of_uneven_length_are_found(tmp_path: Path) -> None:
    there = ["a" * 31, *random_keys(3), "b" * 33]
    check_found(written(str(tmp_path), there, 100), there, there[1:4])


def test_a_file_without_an_index_is_read(tmp_path: Path) -> None:
    there = random_keys(300)
    pq.write_table(table_of(there), tmp_path / "old.parquet", row_group_size=100)
    assert hits(str(tmp_path / "old.parquet"), there[:1]) is None
    check_found(str(tmp_path / "old.parquet"), there, [*there[::7], *random_keys(20, 1)])


def test_other_readers_pass_over_the_index(tmp_path: Path) -> None:
    there = random_keys(300)
    path = written(str(tmp_path), there, 100)
    begin, end = place_of_index(Path(path).read_bytes())
    assert end - begin > 10 * len(there)
    rows = table_of(there)
    assert pq.read_table(path) == rows
    assert pl.read_parquet(path).rows() == pl.DataFrame(rows).rows()
    assert duckdb.sql(f"select * from read_parquet('{path}')").fetchall() == pl.DataFrame(rows).rows()


def test_no_more_row_groups_are_indexed_than_two_bytes_can_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_index, "MAX_GROUPS", 4)
    there = random_keys(50)
    assert hits(written(str(tmp_path), there, 13), there[:1]) is not None
    path = written(str(tmp_path), there, 10)
    assert hits(path, there[:1]) is None
    check_found(path, there, there)
