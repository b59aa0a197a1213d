"""What any training run does, whatever trains in it."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest
from transformers import TrainerCallback

from lake.errors import GateError, UsageError
from lake.query.query import Lake
from tests.training.conftest import publish, sft_rows
from training.jobs.config import Job, read_job
from training.jobs.run import OpenedRows, run_job
from training.jobs.sft import SftJob, train
from training.order import Order, Position
from training.tables import Table


@dataclass(frozen=True)
class DpoJob(Job):
    METHOD: ClassVar[str] = "dpo"
    table: str = "train_preference"
    beta: float = 0.1


class Pairs:
    """The pairs of a table in memory, as a `RowCache`."""

    def __init__(self, lake: Lake, table: Table, tokenizer: Any) -> None:
        query = f"select * from {table.name} order by {table.key}"
        self.pairs = lake.sql(query, table.release.number).to_dicts()
        self.meta = {"digest": table.digest}
        self.tokenizer = tokenizer
        self.lengths = np.array([sum(map(len, self.row(i).values())) for i in range(len(self.pairs))])

    def row(self, index: int) -> dict[str, Any]:
        parts = {"prompt_ids": "messages", "chosen_ids": "chosen", "rejected_ids": "rejected"}
        texts = {name: " ".join(t["content"] for t in self.pairs[index][part]) for name, part in parts.items()}
        return {name: self.tokenizer(text)["input_ids"] for name, text in texts.items()}

    def ids(self, indices: np.ndarray) -> list[str]:
        return [self.pairs[i]["example_id"] for i in indices]


@dataclass(frozen=True)
class Dpo:
    """A whole training method."""

    job: DpoJob

    def arguments(self, common: Mapping[str, Any]) -> Any:
        from trl import DPOConfig

        return DPOConfig(**common, beta=self.job.beta, max_length=None)

    def open_rows(self, lake: Lake, table: Table, store: Path) -> OpenedRows:
        from training.models import load_tokenizer

        tokenizer = load_tokenizer(self.job.model, store / "models")
        return OpenedRows(Pairs(lake, table, tokenizer), tokenizer, lambda folder: (folder / "seen.txt").touch())

    def trainer(self, stream: Any, common: Mapping[str, Any]) -> Any:
        from trl import DPOTrainer

        from training.trainer import StreamTrainerMixin

        class StreamDpoTrainer(StreamTrainerMixin, DPOTrainer):
            pass

        return StreamDpoTrainer(stream, **common)


class Stop(TrainerCallback):
    """Ends a run after a step, as a crash would."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.step:
            raise KeyboardInterrupt


def preferences(n: int) -> list[dict[str, Any]]:
    answer = {"role": "assistant", "content": "no"}
    return [
        {**row, "messages": row["messages"][:1], "chosen": [answer | {"content": f"yes {i}"}], "rejected": [answer]}
        for i, row in enumerate(sft_rows(n))
    ]


@pytest.mark.integration
def test_another_method_gets_folder_resume_and_record_by_saying_its_rows_arguments_and_trainer(
    home: Path, job_file: Callable[..., Path]
) -> None:
    lake = publish(home, {"train_preference": preferences(10)})
    job = read_job(job_file(max_steps=5, batch_size=4, micro_batch_size=2, save_steps=2, beta=0.2), DpoJob)
    with pytest.raises(KeyboardInterrupt):
        run_job(job, Dpo(job), lake, [Stop(3)])
    folder = Path(job.output)
    assert not (folder / "summary.json").exists() and (folder / "seen.txt").exists()
    summary = run_job(job, Dpo(job), lake)
    ids = sorted(lake.sql("select example_id from train_preference")["example_id"])
    order = Order(np.arange(10), lake.release(1).table("train_preference").digest, 0).take(0, 20)
    steps = pq.read_table(folder / "steps.parquet").to_pylist()
    assert [step["example_id"] for step in steps] == [ids[row] for row in order]
    assert [(s["step"], s["position"], s["epoch"]) for s in steps] == [(1 + i // 4, i, i // 10) for i in range(20)]
    assert (summary["job"], summary["steps"], summary["rows"], summary["already"]) == ("dpo", 5, 10, False)
    assert json.loads((folder / "config.json").read_bytes())["beta"] == 0.2
    assert lake.sql("select state, job, steps from log.runs order by registered_at").rows() == [
        ("started", "dpo", 0), ("finished", "dpo", 5),
    ]  # fmt: skip
    assert run_job(job, Dpo(job), lake) == {**summary, "already": True}


def test_a_folder_that_another_process_trains_in_is_refused(chats: Lake, job_file: Callable[..., Path]) -> None:
    job = read_job(job_file(max_steps=1), SftJob)
    Path(job.output).mkdir()
    with (Path(job.output) / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="in use by another process"):
            train(job, chats)
    assert not (Path(job.output) / "release.json").exists()


@pytest.mark.integration
def test_a_run_that_has_begun_stays_on_its_release_and_takes_no_other_content(
    chats: Lake, job_file: Callable[..., Path]
) -> None:
    job = read_job(job_file(max_steps=3, save_steps=1, release=None), SftJob)
    with pytest.raises(KeyboardInterrupt):
        train(job, chats, [Stop(2)])
    publish(Path(chats.home), {"train_sft": sft_rows(20)})
    pins = Path(job.output) / "release.json"
    pinned = json.loads(pins.read_bytes())
    pins.write_text(json.dumps(pinned | {"digest": "0" * 32}))
    with pytest.raises(UsageError, match="began on digest 0000"):
        train(job, chats)
    pins.write_text(json.dumps(pinned))
    summary = train(job, chats)
    assert (summary["release"], summary["rows"], summary["digest"]) == (1, 100, pinned["digest"])


def test_a_loss_that_is_no_number_stops_the_run_and_names_the_rows_of_its_step(tmp_path: Path) -> None:
    from training.checkpoints import CheckpointRecorder
    from training.trainer import TrainedRow

    trained = [TrainedRow(1, 0, 0, 7), TrainedRow(2, 1, 0, 5), TrainedRow(2, 2, 0, 3)]
    stream = SimpleNamespace(ids=lambda rows: [f"id{row}" for row in rows])
    shown: list[Any] = []
    recorder = CheckpointRecorder(
        SimpleNamespace(trained=trained, stream=stream), tmp_path, lambda *call: shown.append(call)
    )
    state = SimpleNamespace(global_step=2, max_steps=9)
    recorder.on_log(None, state, None, {"loss": 1.5})
    recorder.on_log(None, state, None, {"eval": 1})
    with pytest.raises(GateError, match=r"loss of step 2 is nan.*id5, id3\. Look"):
        recorder.on_log(None, state, None, {"loss": float("nan")})
    assert shown == [(2, 9, "loss 1.5000"), (2, 9, "loss nan")]


def test_what_a_kill_left_behind_the_last_whole_checkpoint_is_cleared_away(tmp_path: Path) -> None:
    from training.checkpoints import Checkpoint, last_checkpoint

    assert last_checkpoint(tmp_path) is None
    for step, is_whole in ((8, True), (10, True), (12, False)):
        checkpoint = tmp_path / "checkpoints" / f"checkpoint-{step}"
        checkpoint.mkdir(parents=True)
        if is_whole:
            (checkpoint / "lake_position.json").write_text(json.dumps({"step": step, "epoch": 1, "index": step}))
    (tmp_path / "steps").mkdir()
    for step in (8, 10, 12):
        (tmp_path / "steps" / f"{step:09d}.parquet").touch()
    newest = tmp_path / "checkpoints" / "checkpoint-10"
    assert last_checkpoint(tmp_path) == Checkpoint(newest, 10, Position(1, 10))
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["checkpoint-10", "checkpoint-8"]
    assert sorted(path.name for path in (tmp_path / "steps").iterdir()) == ["000000008.parquet", "000000010.parquet"]
