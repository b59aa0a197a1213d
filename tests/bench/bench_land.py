"""Landing JSONL against `polars.read_ndjson` + `write_parquet` on the same file, each in a process of its own.

    python tests/bench/bench_land.py [--mb 240] [--json]

Landing also hashes the file and every record twice, checks every record strictly, and commits; the goal is at most
twice the time of Polars. Peak memory is the process's own (VmHWM).
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LAND = """
import json, sys, time
from lake.landing.land import land
begin = time.perf_counter()
found = land([sys.argv[1]], "traces", "bench", home=sys.argv[2])
print(json.dumps({"seconds": time.perf_counter() - begin, "rows": found.landed}))
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
    """Run code in a process of its own; return what it says, and its peak memory in MB."""
    call = [sys.executable, "-c", code + PEAK, *map(str, args)]
    said = subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[str, Any] = json.loads(said[0])
    return {**found, "peak_mb": round(int(said[1]) / 1024)}


def compare(size_mb: int, repeats: int = 2) -> dict[str, Any]:
    """Time both on one file, the better of some runs each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_chats(folder / "x.jsonl", size_mb << 20)
        best: dict[str, dict[str, Any]] = {}
        for n in range(repeats):
            for who, code, out in (("lake land", LAND, f"lake{n}"), ("polars", POLARS, f"x{n}.parquet")):
                run = timed(code, folder / "x.jsonl", folder / out)
                if who not in best or run["seconds"] < best[who]["seconds"]:
                    best[who] = run
        again = timed(LAND, folder / "x.jsonl", folder / "lake0")
    assert best["lake land"]["rows"] == best["polars"]["rows"]
    assert again["rows"] == 0
    ratio = best["lake land"]["seconds"] / best["polars"]["seconds"]
    return {"mb": size_mb, **best, "landed again": again, "time_ratio": round(ratio, 2)}


def main() -> None:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=240)
    parser.add_argument("--json", action="store_true", help="print the JSON alone")
    args = parser.parse_args()
    found = compare(args.mb)
    if not args.json:
        print(f"| {found['mb']} MB of chat JSONL | seconds | MB/s | peak MB |\n|---|---:|---:|---:|")
        for who in ("lake land", "polars", "landed again"):
            run = found[who]
            print(f"| {who} | {run['seconds']:.2f} | {found['mb'] / run['seconds']:.0f} | {run['peak_mb']} |")
        print(f"\ntime of landing / time of Polars: {found['time_ratio']} (goal: at most 2)")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
