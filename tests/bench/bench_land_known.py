"""Landing 1,000 records into a lake of 10,000,000 rows against landing them into an empty one.

    python tests/bench/bench_land_known.py [--rows 10_000_000] [--json]

Cases: the rows are of another source, or of the same; what lands is new, is known, or is half of it known, so that
every id is looked up. What is known lies in the midst of a file of a million rows, and no row of raw.landings tells of
it. The rows are made up, seeded, written through `lake.storage` in files of a million: random ids, and payloads that
are all alike; what a look-up reads is as landing writes it.

CPU seconds of the function `land` and peak memory, in a process that has landed elsewhere before, and CPU seconds of
the whole command, mostly imports; the best of some runs. The bar is at most 3 times the CPU time of `land` in an empty
lake. Where it is missed, the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from lake import schema
from lake.config import lake_paths
from lake.landing.land import land
from lake.storage import parquet, table

BAR = 3
RECORDS = 1_000
REPEATS = 3
FILE_ROWS = 1_000_000  # what 128 MiB of such records are: one batch of a landing
BATCH_ROWS = 100_000

FUNCTION = """
import json, re, sys, time
from lake.landing.land import land
source, home, elsewhere, file, measured = sys.argv[1:]
land([file], "traces", source, home=elsewhere)
begin = time.process_time()
summary = land([measured], "traces", source, home=home)
seconds = time.process_time() - begin
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1)) / 1024
print(json.dumps([summary.landed, summary.already, seconds, peak]))
"""


def record(name: str, number: int) -> str:
    """Return a short chat as a line."""
    messages = [{"role": "user", "content": f"{name} {number}"}, {"role": "assistant", "content": "ok"}]
    return json.dumps({"messages": messages})


def new(name: str) -> list[str]:
    """Return records that no lake has."""
    return [record(name, n) for n in range(RECORDS)]


def known(name: str) -> list[str]:
    """Return the records that each lake has."""
    del name
    return [record("known", n) for n in range(RECORDS)]


def grown(name: str) -> list[str]:
    """Return records of which a lake has the first half."""
    return known(name)[: RECORDS // 2] + new(name)[: RECORDS // 2]


def hashes(draw: np.random.Generator, count: int) -> pa.Array:
    """Return random ids of 32 hexadecimal digits."""
    ends, digits = np.arange(0, 32 * count + 1, 32, dtype=np.int32), draw.bytes(16 * count).hex().encode()
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(ends), pa.py_buffer(digits)])


def made_up(columns: pa.Schema, source: str, rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Make rows of raw.traces."""
    draw = np.random.default_rng(seed)
    constant = {
        "source": source, "format": "openai_chat", "path": "old.jsonl", "license": None, "options": "{}",
        "batch_id": "0" * 32, "payload": record("old", 0), "landed_at": datetime(2026, 1, 1, tzinfo=UTC),
    }  # fmt: skip
    for begin in range(0, rows, BATCH_ROWS):
        count = min(BATCH_ROWS, rows - begin)
        values = {name: hashes(draw, count) for name in ("record_id", "previous_id", "payload_hash")}
        values["position"] = pa.array(np.arange(begin, begin + count))
        arrays = [
            values[field.name] if field.name in values
            else pa.repeat(pa.scalar(constant.get(field.name), field.type), count)
            for field in columns
        ]  # fmt: skip
        yield pa.RecordBatch.from_arrays(arrays, schema=columns)


def make_lake(home: Path, rows: int, landed: table.Snapshot) -> None:
    """Make a lake of so many rows, with those of a table among them; raw.landings knows of none."""
    paths = lake_paths(home)
    uri, columns = paths.table("raw", "traces"), schema.writer_schema(paths.project, "raw/traces")
    state = table.create(uri, columns)
    for number, begin in enumerate(range(0, rows, FILE_ROWS)):
        batches = list(made_up(columns, "old", min(FILE_ROWS, rows - begin), number))
        if number == rows // FILE_ROWS // 2:
            batches[len(batches) // 2 : len(batches) // 2] = parquet.read_batches(landed.files)
        state = table.commit(state, table.write(uri, columns, batches))


def command_seconds(source: str, home: Path, file: Path) -> float:
    """Return the CPU seconds of `lake land`."""
    call = [sys.executable, "-c", "import lake.cli; lake.cli.main()", "land", str(file), "--kind", "traces"]
    child = subprocess.Popen(
        [*call, "--source", source], env={**os.environ, "LAKE_HOME": str(home)}, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0
    return usage.ru_utime + usage.ru_stime


def cost(name: str, folder: Path, source: str, lines: Callable[[str], list[str]]) -> dict[str, float]:
    """Land a file into a lake some times, with the function and with the command; the best of each.

    Args:
        name: of the lake; an empty one is made anew each time.
        folder: that the lakes lie in.
        source: that the records land as.
        lines: called with a name that no other file has; gives the file's lines.
    """
    already = len(set(lines("a")) & set(lines("b"))) if source == "old" and name != "empty" else 0
    runs, commands = [], []
    for n in range(REPEATS):
        files = [folder / "in" / f"{name} {source} {lines.__name__} {n} {part}.jsonl" for part in range(3)]
        for k, file in enumerate(files):
            # Empty lines make other bytes of the same records: else the file itself is known.
            file.write_text("\n".join(lines(file.name)) + "\n" * (3 * n + k + 1))
        homes = [folder / f"empty {n} {k}" if name == "empty" else folder / name for k in range(2)]
        call = [
            sys.executable,
            "-c",
            FUNCTION,
            source,
            str(homes[0]),
            str(folder / files[0].stem),
            *map(str, files[:2]),
        ]
        runs.append(json.loads(subprocess.check_output(call, text=True)))
        commands.append(command_seconds(source, homes[1], files[2]))
    assert [run[:2] for run in runs] == [[RECORDS - already, already]] * REPEATS, runs
    return {
        "land_cpu": min(run[2] for run in runs),
        "peak_mb": min(run[3] for run in runs),
        "command_cpu": min(commands),
    }


def compare(rows: int) -> dict[str, dict[str, float]]:
    """Measure all cases."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "in").mkdir()
        (folder / "in/known.jsonl").write_text("\n".join(known("")))
        land([folder / "in/known.jsonl"], "traces", "old", home=folder / "apart")
        landed = table.snapshot(str(folder / "apart/raw/traces"))
        assert landed is not None
        for name, size in (("small", RECORDS), ("large", rows)):
            make_lake(folder / name, size, landed)
        figures = {"empty, new records": cost("empty", folder, "old", new)}
        for source, lines in (("other", new), ("old", new), ("old", known), ("old", grown)):
            for name in ("small", "large"):
                title = f"{name}, {lines.__name__} records of the {'same' if source == 'old' else source} source"
                figures[title] = cost(name, folder, source, lines)
        return figures


def main() -> int:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--json", action="store_true", help="print the JSON alone")
    args = parser.parse_args()
    figures = compare(args.rows)
    base = next(iter(figures.values()))["land_cpu"]
    for run in figures.values():
        run["ratio"] = run["land_cpu"] / base
    if not args.json:
        title = f"{RECORDS:,} records into {RECORDS:,} or {args.rows:,} rows"
        print(f"| {title} | land, CPU s | ratio | command, CPU s | MB |")
        print("|---|---:|---:|---:|---:|")
        for name, run in figures.items():
            print(
                f"| {name} | {run['land_cpu']:.3f} | {run['ratio']:.2f} | {run['command_cpu']:.2f} "
                f"| {run['peak_mb']:.0f} |"
            )
    print(json.dumps(figures))
    return int(max(run["ratio"] for run in figures.values()) > BAR)


if __name__ == "__main__":
    sys.exit(main())
