"""What `lake export`, `lake train` and `lake runs` do after parsing their arguments."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lake.json_values import json_value, usual_number
from lake.progress import progress
from lake.query.query import Lake
from training.runs import list_runs, runs_as_text
from training.shards import export
from training.tables import open_table


def run_export(table: str, release: str | None, file_format: str, shards: int, out: Path, as_json: bool) -> str:
    """Export a table; return what to print.

    Args:
        table: published table.
        release: number or tag; default the last.
        file_format: of `training.shards.FORMATS`.
        shards: number of files.
        out: folder to make.
        as_json: print one JSON object.
    """
    lake = Lake()
    with progress(f"exporting {table}", open_table(lake, table, release).rows) as show:
        facts = export(table, out, release=release, file_format=file_format, shards=shards, lake=lake, progress=show)
    if as_json:
        return json.dumps(facts)
    state = "is there already" if facts["already"] else "written"
    return (
        f"{facts['path']} {state}: {facts['rows']:,} rows of {facts['table']}, release {facts['release']}, in "
        f"{facts['shards']} {facts['format']} shards (manifest.json, row_ids.parquet)"
    )


def run_train_sft(path: Path, as_json: bool) -> str:
    """Train; return what to print, nothing on processes other than the first.

    Args:
        path: of the job's file.
        as_json: print one JSON object.
    """
    from training.jobs.config import read_job
    from training.jobs.sft import SftJob, train

    summary = train(read_job(path, SftJob))
    if not summary or as_json:
        return json.dumps(summary) if summary else ""
    state = "is done already" if summary["already"] else "done"
    return (
        f"{summary['path']} {state}: {summary['steps']} steps on {summary['rows']:,} rows of {summary['table_name']}, "
        f"release {summary['release']} ({summary['dropped_too_long']} rows too long, in too_long.csv); loss "
        f"{summary['first_loss']:.4f} -> {summary['last_loss']:.4f} (loss.csv, loss.png); ids per step in steps.parquet"
    )


def run_runs(as_json: bool) -> str:
    """List runs; return what to print."""
    runs = list_runs()
    if as_json:
        return json.dumps(json_value(runs, usual_number))
    return runs_as_text(runs, sys.stdout.isatty())
