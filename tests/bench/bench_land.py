"""Landing JSONL against `polars.read_ndjson` + `write_parquet` on the same file, each in a process of its own.

    python tests/bench/bench_land.py [--mb 240] [--check FOLDER] [--json]

Landing also hashes the file and every record twice, checks every record strictly, and commits; the goal is at most
twice the time of Polars. Peak memory is the process's own (VmHWM).

`--check FOLDER` times the check of JSON alone, on one core: msgspec first, with our own rule for what it refuses,
against our own rule for all, each over the records of all JSON files of the folder.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np

from lake.landing import json_scan
from lake.landing.containers import json_list, json_values
from lake.landing.streams import Stream

LAND = """
import json, sys, time
from lake.landing.land import land
begin = time.perf_counter()
summary = land([sys.argv[1]], "traces", "bench", home=sys.argv[2])
print(json.dumps({"seconds": time.perf_counter() - begin, "rows": summary.landed}))
"""
POLARS = """
import json, sys, time
import polars as pl
begin = time.perf_counter()
frame = pl.read_ndjson(sys.argv[1])
frame.write_parquet(sys.argv[2])
print(json.dumps({"seconds": time.perf_counter() - begin, "rows": frame.height}))
"""
PEAK = """
import re
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1))
"""


def write_chats(path: Path, size: int, seed: int = 0) -> None:
    """Write chat records of some 2.5 kB, the same for the same seed."""
    draw = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(20_000)]
    words += ["naïve", "größer", "日本語", "\n", '"quoted"', "😀"]
    written = number = 0
    with path.open("wb") as out:
        while written < size:
            turns = []
            for _ in range(draw.randint(1, 4)):
                for role, most in (("user", 60), ("assistant", 200)):
                    content = " ".join(draw.choices(words, k=draw.randint(5, most)))
                    turns.append({"role": role, "content": content})
            line = json.dumps({"id": f"conv-{number}", "model": "m", "messages": turns}, ensure_ascii=False) + "\n"
            written += out.write(line.encode())
            number += 1


def timed(code: str, *args: Path) -> dict[str, Any]:
    """Run code in a process of its own; return the figures that it prints, and its peak memory in MB."""
    call = [sys.executable, "-c", code + PEAK, *map(str, args)]
    lines = subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()
    return {**json.loads(lines[0]), "peak_mb": round(int(lines[1]) / 1024)}


def compare(size_mb: int, repeats: int = 2) -> dict[str, Any]:
    """Time both on one file, the better of some runs each."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_chats(folder / "x.jsonl", size_mb << 20)
        best: dict[str, dict[str, Any]] = {}
        for n in range(repeats):
            for name, code, out in (("lake land", LAND, f"lake{n}"), ("polars", POLARS, f"x{n}.parquet")):
                run = timed(code, folder / "x.jsonl", folder / out)
                if name not in best or run["seconds"] < best[name]["seconds"]:
                    best[name] = run
        again = timed(LAND, folder / "x.jsonl", folder / "lake0")
    assert best["lake land"]["rows"] == best["polars"]["rows"]
    assert again["rows"] == 0
    ratio = best["lake land"]["seconds"] / best["polars"]["seconds"]
    return {"mb": size_mb, **best, "landed again": again, "time_ratio": round(ratio, 2)}


@numba.njit(nogil=True)
def refused(data: Any, stops: Any, stack: Any) -> int:
    """Count the records that our own rule refuses, in one compiled loop over all of them."""
    count = begin = 0
    for stop in stops:
        count += json_scan.check(data, begin, stop, stack) != 0
        begin = stop
    return count


def compare_checks(folder: Path, repeats: int = 7) -> dict[str, Any]:
    """Time the JSON check of `lake.landing.json_scan` with and without msgspec on the same records.

    Args:
        folder: its *.json and *.jsonl files are read; records that are no JSON are left out.
        repeats: runs of each; the best counts, by the processor's clock.
    """
    payloads = []
    for path in sorted(f for f in folder.rglob("*.json*") if f.is_file()):
        with path.open("rb") as raw, Stream(raw) as stream:
            cut = json_list if stream.peek(1 << 10).lstrip().startswith(b"[") else json_values
            for block in cut(stream):
                payloads += [p for i, p in enumerate(block.payloads) if i not in block.problems]
    data, stops = np.frombuffer(b"".join(payloads), np.uint8), np.cumsum([len(p) for p in payloads])

    def by_our_rule() -> None:
        assert not refused(data, stops, np.zeros(json_scan.MAX_DEPTH, np.uint8))

    def by_msgspec_first() -> None:
        assert not json_scan.find_problems(payloads)

    megabytes = sum(map(len, payloads)) / 1e6
    speeds = {}
    for check in (by_msgspec_first, by_our_rule):
        best = float("inf")
        for _ in range(repeats):
            begin = time.process_time()
            check()
            best = min(best, time.process_time() - begin)
        speeds[check.__name__] = round(megabytes / best)
    return {"records": len(payloads), "mb": round(megabytes, 1), "mb_per_second": speeds}


def main() -> None:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=240)
    parser.add_argument("--check", type=Path, metavar="FOLDER", help="time the check of JSON alone, on these files")
    parser.add_argument("--json", action="store_true", help="print the JSON alone")
    args = parser.parse_args()
    if args.check is not None:
        print_checks(compare_checks(args.check), args.json)
        return
    figures = compare(args.mb)
    if not args.json:
        print(f"| {figures['mb']} MB of chat JSONL | seconds | MB/s | peak MB |\n|---|---:|---:|---:|")
        for name in ("lake land", "polars", "landed again"):
            run = figures[name]
            print(f"| {name} | {run['seconds']:.2f} | {figures['mb'] / run['seconds']:.0f} | {run['peak_mb']} |")
        print(f"\ntime of landing / time of Polars: {figures['time_ratio']} (goal: at most 2)")
    print(json.dumps(figures))


def print_checks(figures: dict[str, Any], only_json: bool) -> None:
    """Print the speeds of both checks, and one line of JSON."""
    if not only_json:
        print(f"| {figures['records']:,} JSON records, {figures['mb']} MB, one core | MB/s |\n|---|---:|")
        for name, speed in figures["mb_per_second"].items():
            print(f"| {name.replace('_', ' ')} | {speed:,} |")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
