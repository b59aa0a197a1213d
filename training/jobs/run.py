"""A training run, whatever trains in it: one folder, one release, on record, and safe to kill at any moment.

    table of a release -> cache of rows -> preflight -> LakeStream -> trainer of a method -> run folder

The same code runs on a CPU, on a GPU and under torchrun or accelerate: a step trains the same rows whatever the number
of processes. Running the job again goes on from its last whole checkpoint, and a run that was killed and resumed trains
the rows of an unbroken one (tests/training/test_sft_resume.py).

What SFT, DPO, KTO or GRPO adds is a `Method`: its rows, its arguments, its trainer (`training.jobs.sft`).

Run folder: release.json, config.json, the preflight's files, checkpoints/, loss.csv, loss.png,
steps.parquet (step, position, epoch, row, example_id), model/, summary.json.
"""

from __future__ import annotations

import csv
import fcntl
import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from lake.errors import InternalError, MissingExtraError, UsageError
from lake.files import write_json
from lake.identity import H
from lake.progress import progress
from lake.query.query import Lake
from training.jobs.config import Job
from training.models import load_model
from training.order import Position
from training.register import entry, register
from training.tables import Table, open_table

if TYPE_CHECKING:
    from training.stream import LakeStream, RowCache
    from training.trainer import StreamTrainerMixin

RUN_FORMAT = 1


@dataclass(frozen=True)
class OpenedRows:
    """A table's rows, ready to train.

    Attributes:
        cache: the rows.
        tokenizer: that made them.
        write_preflight: writes into the run folder what a person should see before the first step.
    """

    cache: RowCache
    tokenizer: Any
    write_preflight: Callable[[Path], Any]


class Method(Protocol):
    """What a training method adds to a run."""

    def arguments(self, common: Mapping[str, Any]) -> Any:
        """Return the trainer's config, made of the arguments that all trainers take and the method's own."""

    def open_rows(self, lake: Lake, table: Table, store: Path) -> OpenedRows:
        """Return a table's rows, made first if nobody did; called on the main process before the others.

        Args:
            lake: where they lie.
            table: of the run's release.
            store: folder of caches; models that are unpacked go into its `models/`.
        """

    def trainer(self, stream: LakeStream, common: Mapping[str, Any]) -> StreamTrainerMixin:
        """Return the trainer.

        Args:
            stream: this process's rows.
            common: model, args, processing_class, peft_config, callbacks.
        """


def run_job(job: Job, method: Method, lake: Lake | None = None, callbacks: Sequence[Any] = ()) -> dict[str, Any]:
    """Run a job, or go on with it, or say that it is done.

    Args:
        job: of `read_job`.
        method: that trains.
        lake: where the release lies; default `LAKE_HOME`.
        callbacks: more callbacks for the trainer.

    Returns:
        What summary.json holds: run_id, release, table, rows, dropped_too_long, steps, first_loss, last_loss, path; and
        `already`: whether it was done before.

    Raises:
        MissingExtraError: a package of the extra `train` is not installed.
        UsageError: the folder holds another run or is in use, or rows, model and arguments do not go together.
        GateError: a loss is no number.
    """
    _check_installed(job)
    lake = lake or Lake()
    folder = Path(job.output)
    with _locked(folder):
        table = _pin(lake, job, folder)
        if (folder / "summary.json").is_file():
            return {**json.loads((folder / "summary.json").read_bytes()), "already": True}
        return _train(job, method, lake, table, folder, callbacks)


def _check_installed(job: Job) -> None:
    """Say which package is missing before anything is loaded."""
    packages = ["torch", "transformers", "datasets", "trl", "accelerate", "matplotlib"]
    for package in packages + (["peft"] if job.lora else []):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "train")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep a second process from running the same job; the kernel frees the lock of a killed one."""
    folder.mkdir(parents=True, exist_ok=True)
    if not _is_main_process():  # the first process holds the lock for all of them
        yield
        return
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"{folder} is in use by another process that runs this job. Wait for it.") from error
        yield


def _is_main_process() -> bool:
    return int(os.environ.get("RANK", 0)) == 0


def _pin(lake: Lake, job: Job, folder: Path) -> Table:
    """Open the job's table; a run that has begun keeps its release, and its folder takes no other job."""
    config = {"format": RUN_FORMAT, "job": job.METHOD, **job.as_json()}
    try:
        pinned = json.loads((folder / "release.json").read_bytes())
        config_before = json.loads((folder / "config.json").read_bytes())
    except FileNotFoundError:
        table = open_table(lake, job.table, job.release)
        if _is_main_process():
            write_json(folder / "config.json", config)
            write_json(folder / "release.json", {
                "release": table.release.number, "table": table.name, "digest": table.digest, "rows": table.rows,
                "contract_version": table.contract_version, "home": lake.home,
            })  # fmt: skip
        return table
    if differ := [key for key in config if key != "output" and config[key] != config_before.get(key)]:
        raise UsageError(
            f"{folder} holds a run with another {', '.join(differ)}; expected an empty folder or the same job. "
            "Choose another `output`."
        )
    table = open_table(lake, job.table, pinned["release"])
    if table.digest != pinned["digest"]:
        raise UsageError(
            f"{folder} began on digest {pinned['digest']}; this lake's release {pinned['release']} differs."
        )
    return table


def _train(
    job: Job, method: Method, lake: Lake, table: Table, folder: Path, callbacks: Sequence[Any]
) -> dict[str, Any]:
    from training.checkpoints import CheckpointRecorder, last_checkpoint

    store = lake.paths.workspace.parent / "cache"
    args = method.arguments(_common_arguments(job, folder))
    is_main_process = args.process_index == 0
    with args.main_process_first(local=False):  # the others find what the first has made
        rows = method.open_rows(lake, table, store)
        checkpoint = last_checkpoint(folder)
    steps_before = checkpoint.step if checkpoint else 0
    stream = _open_stream(job, rows.cache, args, checkpoint.position if checkpoint else Position(), steps_before)
    facts = _facts(job, table, stream, folder)
    if is_main_process:
        rows.write_preflight(folder)
        started = entry(lake, "runs", state="started", steps=steps_before, first_loss=None, last_loss=None, **facts)
        register(lake, "runs", started, {"run_id": facts["run_id"], "state": "started"})
    trainer = method.trainer(stream, {
        "model": load_model(job.model, store / "models"), "args": args, "processing_class": rows.tokenizer,
        "peft_config": _lora_config(job), "callbacks": list(callbacks),
    })  # fmt: skip
    began = time.monotonic()
    with progress("training", job.max_steps, "steps", start=steps_before, quiet=not is_main_process) as show:
        trainer.add_callback(CheckpointRecorder(trainer, folder, show))
        trainer.train(resume_from_checkpoint=str(checkpoint.path) if checkpoint else None)
    if trainer.state.global_step != job.max_steps:
        raise InternalError(f"the run stopped after {trainer.state.global_step} steps; expected {job.max_steps}.")
    trainer.save_model(str(folder / "model"))
    summary: dict[str, Any] = {}
    if is_main_process:
        rows.tokenizer.save_pretrained(folder / "model")
        summary = _finish(lake, folder, facts, trainer.state.log_history, time.monotonic() - began)
    trainer.accelerator.wait_for_everyone()
    return summary


def _common_arguments(job: Job, folder: Path) -> dict[str, Any]:
    """Return the arguments that every trainer of TRL takes."""
    import torch

    world, gpu = int(os.environ.get("WORLD_SIZE", 1)), torch.cuda.is_available()
    micro = job.micro_batch_size or max(1, job.batch_size // world)
    if job.batch_size % (micro * world):
        raise UsageError(
            f"batch_size {job.batch_size} is not a multiple of micro_batch_size {micro} times {world} processes. "
            "Change one of them."
        )
    return {
        "output_dir": str(folder / "checkpoints"), "max_steps": job.max_steps, "learning_rate": job.learning_rate,
        "per_device_train_batch_size": micro, "gradient_accumulation_steps": job.batch_size // (micro * world),
        "seed": job.seed, "save_strategy": "steps", "save_steps": job.save_steps, "save_total_limit": 2,
        "logging_steps": 1, "logging_nan_inf_filter": False, "report_to": [], "disable_tqdm": True,
        "use_cpu": not gpu, "bf16": gpu, "activation_checkpointing": gpu,  # both are on by default, and fail on a CPU
        "remove_unused_columns": False, "ignore_data_skip": True,
    }  # fmt: skip


def _open_stream(job: Job, cache: RowCache, args: Any, start: Position, steps_before: int) -> LakeStream:
    """Open this process's share of the batches that are left."""
    from training.stream import LakeStream
    from training.trainer import copies_of_a_row

    return LakeStream(
        cache, max_length=job.max_length, seed=job.seed, start=start,
        batch_size=args.per_device_train_batch_size // copies_of_a_row(args) * args.world_size,
        batches=(job.max_steps - steps_before) * args.gradient_accumulation_steps,
        rank=args.process_index, world=args.world_size,
    )  # fmt: skip


def _facts(job: Job, table: Table, stream: LakeStream, folder: Path) -> dict[str, Any]:
    """Return what a run's entries in `log.runs` and its summary have in common."""
    config = json.dumps(job.as_json(), sort_keys=True)
    return {
        "run_id": H("run", job.METHOD, config, table.digest), "job": job.METHOD, "table_name": table.name,
        "release": table.release.number, "digest": table.digest, "model": job.model, "config": config,
        "rows": len(stream.order), "dropped_too_long": len(stream.too_long), "path": str(folder.resolve()),
    }  # fmt: skip


def _lora_config(job: Job) -> Any:
    if job.lora is None:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=job.lora.get("r", 16), lora_alpha=job.lora.get("alpha", 32), lora_dropout=job.lora.get("dropout", 0.0),
        target_modules=job.lora.get("target_modules", "all-linear"), task_type="CAUSAL_LM",
    )  # fmt: skip


def _finish(
    lake: Lake, folder: Path, facts: dict[str, Any], history: list[dict[str, Any]], seconds: float
) -> dict[str, Any]:
    """Write the curves and the steps, register the run, and last the summary that says it is done."""
    from training.checkpoints import read_steps

    losses = [(int(log["step"]), float(log["loss"]), float(log["learning_rate"])) for log in history if "loss" in log]
    with (folder / "loss.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "loss", "learning_rate"])
        writer.writerows(losses)
    _draw_loss(losses, folder / "loss.png", f"{facts['job']} on {facts['table_name']}, release {facts['release']}")
    steps = read_steps(folder)
    pq.write_table(steps, folder / "steps.parquet")
    run_id = {"run_id": facts["run_id"]}
    rows = steps.drop_columns("row").add_column(0, "run_id", pa.array([facts["run_id"]] * len(steps), pa.string()))
    register(lake, "run_steps", rows, run_id)
    ends = {"steps": losses[-1][0], "first_loss": losses[0][1], "last_loss": losses[-1][1]}
    register(lake, "runs", entry(lake, "runs", state="finished", **facts, **ends), {**run_id, "state": "finished"})
    summary = {**{k: v for k, v in facts.items() if k != "config"}, **ends, "seconds": round(seconds, 1)}
    write_json(folder / "summary.json", summary)
    return {**summary, "already": False}


def _draw_loss(losses: Sequence[tuple[int, float, float]], path: Path, title: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([step for step, _, _ in losses], [loss for _, loss, _ in losses], marker=".")
    axes.set(xlabel="step", ylabel="training loss", title=title)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
