"""`Lake.sql` against DuckDB on bare Parquet: the same files, queries and process; the best of several turns each.

    python tests/bench/bench_sql.py [rows]

The difference is what the lake adds: reading the release and the table's log, checking the parsed query, one locked
connection with its views. Goal: at most 1.1 times the time of bare Parquet over the queries together.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable

import duckdb
import pyarrow as pa

from lake.query.query import Lake
from lake.storage.refs import Refs, Release, TableVersion
from lake.storage.table import append, snapshot
from lake.storage.views import scan

ROWS = 3_000_000
FILES = 8
TURNS = 7
GOAL = 1.1
QUERIES = {
    "count by source": "select source, count(*) as n from examples group by all order by all",
    "longest texts": "select example_id, length(text) as n from examples order by n desc, example_id limit 10",
    "search in text": "select count(*) as n from examples where text like '%lake 77%'",
    "distinct texts": "select count(distinct text_hash) as n from examples",
    "self join": (
        "select count(*) as n from examples as a join examples as b "
        "on a.text_hash = b.text_hash and a.example_id < b.example_id"
    ),
}


def make(home: str, rows: int) -> None:
    """Publish a table of examples in several files."""
    per_file = rows // FILES
    for n in range(FILES):
        made = duckdb.sql(
            "select md5(i::varchar) as example_id, 'source ' || i % 7 as source, "
            "repeat('the lake ' || i % 1000 || ' is deep ', 1 + i % 20) as text, md5((i // 2)::varchar) as text_hash, "
            f"md5('row' || i) as row_hash from range({n * per_file}, {(n + 1) * per_file}) t(i)"
        ).to_arrow_table()
        table = pa.Table.from_batches(made.to_batches(), schema=made.schema)
        append(f"{home}/tables/examples", table.schema, table)
    found = snapshot(f"{home}/tables/examples")
    assert found is not None
    version = TableVersion(found.version, per_file * FILES, "0" * 32, "1.0.0")
    Refs(home).add(Release(1, None, {"examples": version}, {}, {}, None, "bench", "2026-01-01T00:00:00+00:00", home))


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(rows: int) -> float:
    """Measure, print a table and return the ratio over all queries."""
    with tempfile.TemporaryDirectory() as home:
        make(home, rows)
        relation = scan(Lake(home).release().snapshot("examples").files)

        def bare(query: str) -> list[tuple[object, ...]]:
            with duckdb.connect() as connection:
                connection.execute(f"create view examples as select * from {relation}")
                return connection.sql(query).pl().rows()

        print(f"| query over {rows:,} rows | bare Parquet, s | lake sql, s | ratio |\n|---|---:|---:|---:|")
        totals = [0.0, 0.0]
        for name, query in QUERIES.items():
            assert Lake(home).sql(query).rows() == bare(query)
            turns = [
                (seconds(lambda q=query: bare(q)), seconds(lambda q=query: Lake(home).sql(q))) for _ in range(TURNS)
            ]
            best = [min(one) for one in zip(*turns, strict=True)]
            totals = [total + one for total, one in zip(totals, best, strict=True)]
            print(f"| {name} | {best[0]:.3f} | {best[1]:.3f} | {best[1] / best[0]:.2f} |")
        ratio = totals[1] / totals[0]
        print(f"| all | {totals[0]:.3f} | {totals[1]:.3f} | {ratio:.2f} |")
        return ratio


if __name__ == "__main__":
    ratio = main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
    if ratio > GOAL:
        raise SystemExit(f"lake sql took {ratio:.2f} times as long as bare Parquet; at most {GOAL} is the goal")
