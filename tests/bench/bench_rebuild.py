"""`lake build` with nothing new, against dbt's own start: what a rerun costs.

    python tests/bench/bench_rebuild.py

Lands tau-bench's runs, GPTeacher and GSM8K's test split, builds, and builds again. Goal: no kernel computes, and the
second build takes less than 20 s beyond `dbt parse`, which is dbt's own start. Exits 1 otherwise.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lake.config import lake_paths
from lake.landing.land import land
from lake.releases.build import build

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("LAKEWRIGHT_DATA", ROOT.parent / "shared" / "data"))
INPUT = {"traces/tau_bench": "traces", "synthetic/gpteacher": "synthetic", "eval/gsm8k": "benchmark"}
GOAL = 20.0


def main() -> int:
    """Run it; return the exit status."""
    if not DATA.is_dir():
        print(f"skipped: the real input is not at {DATA}; set LAKEWRIGHT_DATA to its folder")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(LAKE_WORKSPACE=f"{folder}/workspace.duckdb", DBT_TARGET_PATH=f"{folder}/target")
        os.environ.update(LAKE_HOME=f"{folder}/lake", DBT_LOG_PATH=f"{folder}/logs")
        for source, kind in INPUT.items():
            land([DATA / source], kind, source.split("/")[1], home=f"{folder}/lake")
        first = build(lake_paths(), quiet=True)
        started = time.monotonic()
        command = [sys.executable, "-m", "dbt.cli.main", "parse", "--no-partial-parse", "--profiles-dir", "lake"]
        subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)
        start = time.monotonic() - started
        again = build(lake_paths(), quiet=True)
    examples = sum(group["examples"] for group in again.funnel)
    computed = sum(m["computed"] for m in again.memos)
    whole = {"first": sum(first.seconds.values()), "again": sum(again.seconds.values())}
    print("\n| examples | first build, s | build again, s | dbt's start, s | beyond it, s | results computed again |")
    print("|---:|---:|---:|---:|---:|---:|")
    beyond = whole["again"] - start
    print(f"| {examples} | {whole['first']:.1f} | {whole['again']:.1f} | {start:.1f} | {beyond:.1f} | {computed} |")
    print(again.seconds)
    return 0 if beyond < GOAL and not computed else 1


if __name__ == "__main__":
    sys.exit(main())
