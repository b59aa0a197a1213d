"""A run that was killed and goes on trains exactly the rows of an unbroken one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lake.query.query import Lake
from tests.effort import rounds
from training.jobs.config import read_job
from training.jobs.sft import SftJob, train

pytestmark = [pytest.mark.integration, pytest.mark.kill]
RUN = """
import os, signal, sys
from pathlib import Path
from transformers import TrainerCallback
from training.jobs.config import read_job
from training.jobs.sft import SftJob, train

class Kill(TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        if state.global_step == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    train(read_job(Path(sys.argv[1]), SftJob), callbacks=[Kill()])
"""


def killed_at(job: Path, step: int) -> None:
    """Run a job in a process of its own that dies by SIGKILL at the end of a step."""
    killed = subprocess.run([sys.executable, "-c", RUN, str(job), str(step)], capture_output=True, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()[-2000:]


@pytest.mark.parametrize("attempt", range(rounds(1)))
def test_a_run_killed_at_a_random_step_and_resumed_equals_an_unbroken_one(
    chats: Lake, job_file: Callable[..., Path], attempt: int
) -> None:
    from safetensors.torch import load_file

    whole = job_file("whole", max_steps=30, save_steps=4)  # 240 rows: into the third pass over the 100
    train(read_job(whole, SftJob), chats)
    broken = job_file("broken", max_steps=30, save_steps=4)
    step = random.randrange(5, 30)
    killed_at(broken, step)
    folder = broken.parent / "broken"
    assert not (folder / "summary.json").exists()
    train(read_job(broken, SftJob), chats)
    first, second = (pq.read_table(broken.parent / name / "steps.parquet") for name in ("whole", "broken"))
    assert first.equals(second), f"killed at step {step}"
    assert (folder / "loss.csv").read_text() == (whole.parent / "whole" / "loss.csv").read_text()
    one, other = (load_file(broken.parent / name / "model" / "model.safetensors") for name in ("whole", "broken"))
    assert one.keys() == other.keys()
    assert all(one[name].equal(other[name]) for name in one), f"killed at step {step}"
    logged = chats.sql("select run_id, count(*) as n, count(distinct position) as m from log.run_steps group by 1")
    assert logged.select("n", "m").rows() == [(240, 240), (240, 240)]


@pytest.mark.slow
def test_a_run_killed_on_one_process_and_resumed_on_two_trains_the_same_rows_at_each_step(
    chats: Lake, job_file: Callable[..., Path], tmp_path: Path
) -> None:
    lora = {"r": 4, "dropout": 0.1}
    whole = job_file("whole", max_steps=14, save_steps=4, lora=lora)
    train(read_job(whole, SftJob), chats)
    broken = job_file("broken", max_steps=14, save_steps=4, lora=lora)
    killed_at(broken, random.randrange(5, 14))
    script = tmp_path / "run.py"
    script.write_text(RUN)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    resumed = subprocess.run(
        [*command, str(script), str(broken), "0"], capture_output=True, timeout=500, env=os.environ
    )
    assert resumed.returncode == 0, resumed.stderr.decode()[-3000:]
    first, second = (pq.read_table(tmp_path / name / "steps.parquet") for name in ("whole", "broken"))
    assert first.equals(second)
    assert '"world": 2' in (tmp_path / "broken" / "checkpoints" / "checkpoint-14" / "lake_position.json").read_text()
