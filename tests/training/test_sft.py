"""Training end to end on a tiny random model and a real release."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lake.query.query import Lake
from training.jobs.config import read_job
from training.jobs.sft import SftJob, train


@pytest.mark.integration
def test_a_job_trains_every_row_once_an_epoch_and_says_so(chats: Lake, job_file: Callable[..., Path]) -> None:
    path = job_file(max_steps=25)  # 200 rows: two epochs of the 100
    summary = train(read_job(path, SftJob), chats)
    folder = path.parent / "run"
    steps = pq.read_table(folder / "steps.parquet").to_pylist()
    ids = [row["example_id"] for row in steps]
    everything = sorted(chats.sql("select example_id from train_sft")["example_id"])
    assert [sorted(ids[:100]), sorted(ids[100:])] == [everything, everything]
    assert ids[:100] != ids[100:]
    assert [row["step"] for row in steps] == [1 + i // 8 for i in range(200)]
    assert [(row["position"], row["epoch"]) for row in steps] == [(i, i // 100) for i in range(200)]
    losses = [float(row["loss"]) for row in csv.DictReader((folder / "loss.csv").open())]
    assert len(losses) == 25 and all(map(math.isfinite, losses)) and losses[-1] < losses[0]
    assert (folder / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert summary["first_loss"] == losses[0] and summary["last_loss"] == losses[-1]
    assert json.loads((folder / "release.json").read_bytes())["release"] == 1
    logged = chats.sql("select step, position, example_id from log.run_steps order by position").to_dicts()
    assert logged == [{k: row[k] for k in ("step", "position", "example_id")} for row in steps]
    states = chats.sql("select state, steps from log.runs order by registered_at").rows()
    assert states == [("started", 0), ("finished", 25)]
    again = train(read_job(path, SftJob), chats)
    assert again == {**summary, "already": True}
    assert chats.sql("select count(*) from log.run_steps").item() == 200
    (folder / "summary.json").unlink()  # killed after the last checkpoint
    assert {**train(read_job(path, SftJob), chats), "seconds": 0} == {**summary, "seconds": 0}
    assert pq.read_table(folder / "steps.parquet").to_pylist() == steps
    assert chats.sql("select count(*) from log.runs").item() == 2
