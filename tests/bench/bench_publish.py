"""What a publish writes and what a commit costs: 1,000 new rows beside 200,000, and a small append on its own.

    PYTHONPATH=. python tests/bench/bench_publish.py

Publishes a table of 200,000 rows, then the same with 1,000 more, and appends one row to a table of its own 50 times.
Goal: a publish writes no more than twice the new rows. Exits 1 otherwise.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow as pa

from lake.releases.publish import publish
from lake.storage.table import append
from tests.small_lake import SmallLake

ROWS, NEW, COMMITS = 200_000, 1_000, 50
TABLE = """
    create or replace table main.examples as
    select *, left(sha256(to_json(r)::varchar), 32) as row_hash
    from (select left(sha256(i::varchar), 32) as example_id, 's' as source, i::varchar as text from range({}) t(i)) r
"""


def publish_rows(lake: SmallLake, rows: int) -> tuple[int, float]:
    """Build a table of so many rows and publish it; return the rows written and the seconds."""
    lake.build([])
    with duckdb.connect(lake.paths.workspace) as connection:
        connection.execute(TABLE.format(rows))
    started = time.perf_counter()
    written = publish(lake.paths).written["examples"]
    return written, time.perf_counter() - started


def commit_seconds(folder: Path) -> float:
    """Return the median time of an append of one row, its Parquet file included."""
    schema, row = pa.schema([("key", pa.string())]), pa.table({"key": ["k"]})
    times = []
    for _ in range(COMMITS):
        started = time.perf_counter()
        append(str(folder / "log"), schema, row)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> int:
    """Measure and print; return the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        lake = SmallLake.make(Path(folder))
        print("| publish | rows written | share | s |\n|---|---:|---:|---:|")
        for name, rows in (("first", ROWS), (f"{NEW:,} rows more", ROWS + NEW)):
            written, seconds = publish_rows(lake, rows)
            print(f"| {name} | {written:,} | {written / rows:.2%} | {seconds:.2f} |")
        print(f"\nan append of one row: {commit_seconds(Path(folder)) * 1000:.0f} ms (median of {COMMITS})")
    return int(written > 2 * NEW)


if __name__ == "__main__":
    sys.exit(main())
