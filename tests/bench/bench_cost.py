"""What a build costs where little changed, as a share of what building everything costs: promise 4.

    python tests/bench/bench_cost.py [--rows 100000 1000000] [--verify]

Lands chats beside GSM8K and builds; then, each on the release before it: nothing new, the same in a workspace without
tables (another clone), 0.1 % and 1 % more chats, the licence of 1 % amended, a changed threshold, and a new suite of
IFEval's 541 items. The chats are made up: GPTeacher's sentences, drawn anew for each turn (seeded), and one in a
hundred repeats an earlier one. Measured are processor seconds and the peak memory of `lake build` and all that it
starts. With several sizes the last table gives what a row of the lake costs a build that has nothing to do with it.
Each share has a bar from 1,000,000 chats on (dbt's start and tests are most of what a small lake costs); exits 1 where
one is missed, and, with --verify, where a table differs from that of a build of everything.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lake.init import init
from lake.landing.land import land
from lake.storage.refs import Refs

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("LAKEWRIGHT_DATA", ROOT.parent / "shared" / "data"))
BARS = {"nothing new": 10, "+1 %": 15, "licence of 1 %": 15, "threshold": 12, "new suite": 45}
BARS_FROM = 1_000_000
LAKE = [sys.executable, "-c", "from lake.cli import main; main()"]


@dataclass(frozen=True)
class Cost:
    """Processor seconds, peak memory of the largest process in MB, rows written."""

    seconds: float
    megabytes: float
    written: int


class Bench:
    """One lake of a size, and the builds on it."""

    def __init__(self, folder: Path, rows: int, sentences: list[str]) -> None:
        self.folder = folder
        self.rows = rows
        self.sentences = sentences
        self.project = folder / "project"
        init(self.project)
        self.home = str(folder / "lake")

    def chats(self, name: str, count: int) -> Path:
        """Write made-up chats."""
        path = self.folder / f"{name}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for line in _chats(f"{name} {self.rows}", count, self.sentences):
                file.write(line)
        return path

    def land(self, path: Path, kind: str, source: str, licence: str = "MIT", amend: bool = False) -> None:
        """Land files."""
        land([path], kind, source, home=self.home, license=licence, amend=amend)

    def build(self, workspace: str = "one", *options: str) -> Cost:
        """Run `lake build`."""
        places = {"LAKE_HOME": self.home, "LAKE_WORKSPACE": str(self.folder / f"{workspace}.duckdb")}
        output = self.folder / "output.json"
        with output.open("wb") as out, (self.folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*LAKE, "build", "--json", *options], cwd=self.project, env=os.environ | places, stdout=out, stderr=log
            )
            _, status, used = os.wait4(process.pid, 0)
        if status:
            sys.exit((self.folder / "log").read_text("utf-8")[-4000:])
        written = sum(json.loads(output.read_bytes())["written"].values())
        return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, written)

    def is_equal(self) -> bool:
        """Say whether a build of everything finds the last release's content."""
        number = Refs(self.home).numbers()[-1]
        (self.folder / "whole.duckdb").unlink(missing_ok=True)
        self.build("whole", "--full-refresh")
        return Refs(self.home).numbers()[-1] == number

    def run(self, verify: bool) -> tuple[dict[str, Cost], list[str]]:
        """Return the cost of each case, and the cases whose content a full build does not confirm."""
        hundredth = self.chats("hundredth", self.rows // 100)
        self.land(self.chats("most", self.rows), "synthetic", "most")
        self.land(hundredth, "synthetic", "hundredth")
        self.land(DATA / "eval/gsm8k", "benchmark", "gsm8k")
        costs = {"everything": self.build()}
        differing = []

        def case(name: str, workspace: str = "one") -> None:
            costs[name] = self.build(workspace)
            if verify and not self.is_equal():
                differing.append(name)

        case("nothing new")
        case("nothing new, another clone", "two")
        self.land(self.chats("thousandth", self.rows // 1000), "synthetic", "thousandth")
        case("+0.1 %")
        self.land(self.chats("more", self.rows // 100), "synthetic", "more")
        case("+1 %")
        self.land(hundredth, "synthetic", "hundredth", "Apache-2.0", amend=True)
        case("licence of 1 %")
        thresholds = self.project / "contracts/reference/thresholds.csv"
        text = thresholds.read_text("utf-8")
        thresholds.write_text(re.sub(r"(contamination_common_texts),\d+", r"\1,2", text), "utf-8")
        case("threshold")
        self.land(DATA / "eval/ifeval", "benchmark", "ifeval")
        case("new suite")
        return costs, differing


def _chats(seed: str, count: int, sentences: list[str]) -> Iterator[str]:
    draw = random.Random(seed)
    line = ""
    for number in range(count):
        if not line or number % 100:
            user, assistant = (" ".join(draw.choices(sentences, k=draw.randint(1, 4))) for _ in range(2))
            turns = [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
            line = json.dumps({"messages": turns}) + "\n"
        yield line


def _sentences() -> list[str]:
    """Return GPTeacher's sentences."""
    found: dict[str, None] = {}
    for file in sorted((DATA / "synthetic/gpteacher").rglob("*.json")):
        for row in json.loads(file.read_bytes()):
            for text in row.values():
                found.update(dict.fromkeys(re.findall(r"[A-Z][^.!?\n]{20,150}[.!?]", str(text))))
    return [*found]


def main() -> int:
    """Run it; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000], help="chats; several sizes give the slope")
    parser.add_argument("--verify", action="store_true", help="compare each case with a build of everything")
    arguments = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped: the real input is not at {DATA}; set LAKEWRIGHT_DATA to its folder")
        return 0
    sentences = _sentences()
    missed: list[str] = []
    found: dict[int, dict[str, Cost]] = {}
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory() as folder:
            costs, differing = Bench(Path(folder), rows, sentences).run(arguments.verify)
        found[rows] = costs
        missed += [f"{name} at {rows:,}: other rows than a build of everything" for name in differing]
        print(f"\n| {rows:,} chats | CPU, s | share, % | bar, % | peak, MB | rows written |")
        print("|---|---:|---:|---:|---:|---:|")
        for name, cost in costs.items():
            share, bar = 100 * cost.seconds / costs["everything"].seconds, BARS.get(name)
            shown = (
                f"| {name} | {cost.seconds:.1f} | {share:.0f} | {bar or ''} | {cost.megabytes:.0f} | {cost.written:,} |"
            )
            print(shown, flush=True)
            if bar and share > bar and rows >= BARS_FROM:
                missed.append(f"{name} at {rows:,}: {share:.1f} %, expected {bar} % at most")
    if len(found) > 1:
        small, large = min(found), max(found)
        print("\n| case | microseconds a row of the lake |\n|---|---:|")
        for name in found[large]:
            slope = (found[large][name].seconds - found[small][name].seconds) / (large - small)
            print(f"| {name} | {slope * 1e6:.1f} |")
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
