"""Rows of a table's files by their keys, at the cost of the keys: see `lake.storage.key_index`."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lake.storage import key_index
from lake.storage.parquet import filesystem_of


def find_rows(paths: Iterable[str], columns: Sequence[str], key: str, values: Iterable[str]) -> pa.Table:
    """Read the rows of a table's files that have some keys; of files with a key index, little else is read.

    Args:
        paths: absolute paths or URLs, as `Snapshot.files` has them.
        columns: columns of strings to return, the key among them.
        key: the first column, one of `key_index.KEYS`.
        values: keys to look for.
    """
    wanted, prefixes = _distinct(values)
    rows: list[pa.RecordBatch] = []
    for path, hits in _look_up(paths, prefixes) if len(wanted) else ():
        rows += _confirmed(path, columns, key, wanted, hits)
    return pa.Table.from_batches(rows) if rows else pa.table({name: pa.array([], pa.string()) for name in columns})


def may_have(paths: Iterable[str], key: str, values: Iterable[str]) -> set[str]:
    """Return which of some keys a table's files may have: those with the same first 64 bits, where there is an index.

    Args:
        paths: absolute paths or URLs, as `Snapshot.files` has them.
        key: the first column, one of `key_index.KEYS`.
        values: keys to look for.
    """
    wanted, prefixes = _distinct(values)
    found: set[str] = set()
    for path, hits in _look_up(paths, prefixes) if len(wanted) else ():
        if hits is None:
            found.update(*(batch[key].to_pylist() for batch in _confirmed(path, [key], key, wanted, None)))
        else:
            found.update(wanted.take(pa.array(hits.keys, pa.int64())).to_pylist())
    return found


def _distinct(values: Iterable[str]) -> tuple[pa.Array, NDArray[np.uint64] | None]:
    """Return the distinct ones of some keys in the order of their prefixes, and these; None where a key has none."""
    wanted = pc.unique(pa.array(list(values), pa.string()))
    prefixes = key_index.prefixes(wanted)
    if prefixes is None:
        return wanted, None
    order = np.argsort(prefixes)
    return wanted.take(pa.array(order)), prefixes[order]


def _look_up(paths: Iterable[str], prefixes: NDArray[np.uint64] | None) -> Iterator[tuple[str, key_index.Hits | None]]:
    """Yield the files that may have some keys, and what their indexes say; None where one is missing or damaged."""
    for path in paths:
        hits = None if prefixes is None else _hits(path, prefixes)
        if hits is None or hits.keys:
            yield path, hits


def _hits(path: str, prefixes: NDArray[np.uint64]) -> key_index.Hits | None:
    if "://" not in path:
        # Not by pyarrow: it has the system read ahead all that it maps.
        with Path(path).open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return key_index.look_up(lambda size, offset: data[offset : offset + size], len(data), prefixes)
    filesystem, where = filesystem_of(path)
    with filesystem.open_input_file(where) as source:
        return key_index.look_up(source.read_at, source.size(), prefixes)


def _confirmed(
    path: str, columns: Sequence[str], key: str, wanted: pa.Array, hits: key_index.Hits | None
) -> list[pa.RecordBatch]:
    """Read the rows of a file that have some keys: where its index has them, or everywhere if they are not there."""
    filesystem, where = filesystem_of(path)
    with filesystem.open_input_file(where) as source:
        file = pq.ParquetFile(source)
        every = list(range(file.num_row_groups))
        for groups in (hits.groups, every) if hits and hits.groups[-1] < len(every) else (every,):
            batches = file.iter_batches(65_536, row_groups=groups, columns=list(columns))
            rows = [batch.filter(pc.is_in(batch[key], wanted)) for batch in batches]
            if hits and len({x for batch in rows for x in batch[key].to_pylist()}) >= len(hits.keys):
                break
    return rows
