"""What was trained: the registered runs, the newest first."""

from __future__ import annotations

from typing import Any

from lake.query.output import draw_table
from lake.query.query import Lake

QUERY = """
    select
        run_id, job, table_name, release, model, max(steps) as steps, min(rows) as rows,
        max(first_loss) as first_loss, max(last_loss) as last_loss, min(registered_at) as started_at,
        if(bool_or(state = 'finished'), 'finished', 'started') as state, min(path) as path
    from log.runs
    group by run_id, job, table_name, release, model
    order by started_at desc, run_id
"""


def list_runs(lake: Lake | None = None) -> list[dict[str, Any]]:
    """Return each run once: `finished`, or `started` while it runs or after it was killed.

    Args:
        lake: default `LAKE_HOME`.
    """
    return (lake or Lake()).sql(QUERY).to_dicts()


def runs_as_text(runs: list[dict[str, Any]], terminal: bool) -> str:
    """Return runs as a table for people.

    Args:
        runs: of `list_runs`.
        terminal: draw it for a terminal.
    """
    if not runs:
        return "no runs yet; `lake train sft job.yaml` makes one"
    rows = [
        [
            run["run_id"][:12], f"{run['started_at']:%Y-%m-%d %H:%M}", run["state"], run["job"],
            f"{run['table_name']}@{run['release']}", str(run["steps"]),
            "" if run["first_loss"] is None else f"{run['first_loss']:.4f} -> {run['last_loss']:.4f}", run["path"],
        ]
        for run in runs
    ]  # fmt: skip
    names = ["run", "started", "state", "job", "table", "steps", "loss", "path"]
    return draw_table(names, rows, [name == "steps" for name in names], terminal).rstrip("\n")
