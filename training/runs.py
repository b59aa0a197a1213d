"""What was trained: the registered runs, the newest first."""

from __future__ import annotations

from typing import Any

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


def runs_as_text(runs: list[dict[str, Any]]) -> str:
    """Return runs as lines for people."""
    if not runs:
        return "no runs yet; `lake train sft job.yaml` makes one"
    lines = []
    for run in runs:
        loss = "" if run["first_loss"] is None else f"  loss {run['first_loss']:.4f} -> {run['last_loss']:.4f}"
        what = f"{run['job']} {run['table_name']}@{run['release']}  {run['steps']} steps{loss}"
        lines.append(
            f"{run['run_id'][:12]}  {run['started_at']:%Y-%m-%d %H:%M}  {run['state']:8}  {what}  {run['path']}"
        )
    return "\n".join(lines)
