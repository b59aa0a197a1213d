"""What `lake export`, `lake train` and `lake runs` do after parsing their arguments."""

from __future__ import annotations

import json
from pathlib import Path

from lake.query.query import Lake
from training.progress import bar
from training.runs import list_runs, runs_as_text
from training.shards import export
from training.tables import open_table


def run_export(table: str, release: str | None, file_format: str, shards: int, out: Path, as_json: bool) -> str:
    """Export a table; return what to print."""
    lake = Lake()
    with bar(open_table(lake, table, release).rows, f"exporting {table}") as tick:
        said = export(table, out, release=release, file_format=file_format, shards=shards, lake=lake, progress=tick)
    if as_json:
        return json.dumps(said)
    how = "is there already" if said["already"] else "written"
    return (
        f"{said['path']} {how}: {said['rows']:,} rows of {said['table']}, release {said['release']}, in "
        f"{said['shards']} {said['format']} shards (manifest.json, row_ids.parquet)"
    )


def run_train_sft(path: Path, as_json: bool) -> str:
    """Train; return what to print, nothing on processes other than the first."""
    from training.jobs.config import read_job
    from training.jobs.sft import train

    said = train(read_job(path))
    if not said or as_json:
        return json.dumps(said) if said else ""
    how = "is done already" if said["already"] else "done"
    return (
        f"{said['path']} {how}: {said['steps']} steps on {said['rows']:,} rows of {said['table_name']}, release "
        f"{said['release']} ({said['dropped_too_long']} rows too long, in too_long.csv); loss "
        f"{said['first_loss']:.4f} -> {said['last_loss']:.4f} (loss.csv, loss.png); ids per step in steps.parquet"
    )


def run_runs(as_json: bool) -> str:
    """List runs; return what to print."""
    runs = list_runs()
    return json.dumps(runs, default=str) if as_json else runs_as_text(runs)
