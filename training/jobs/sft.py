"""`lake train sft job.yaml`: a release's chats through TRL's SFTTrainer, row by row on record.

    table of a release -> token cache -> preflight -> LakeStream -> SFTTrainer -> run folder

The same code runs on a CPU, on a GPU and under torchrun or accelerate: a step trains the same rows whatever the number
of processes. Running the job again goes on from its last whole checkpoint, and a run that was killed and resumed trains
the rows of an unbroken one (tests/training/test_sft_resume.py).

Run folder: release.json, config.json, preflight.json, chat_template.jinja, first_examples.txt, too_long.csv,
checkpoints/, loss.csv, loss.png, steps.parquet (step, position, epoch, row, example_id), model/, summary.json.
"""

from __future__ import annotations

import csv
import fcntl
import importlib.util
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lake.errors import InternalError, MissingExtraError, UsageError
from lake.identity import H
from lake.query.query import Lake
from training.checks import preflight
from training.files import write_json
from training.jobs.config import SftJob
from training.masks import ChatEncoder
from training.models import load_model, load_tokenizer
from training.order import Position
from training.progress import bar
from training.register import entry, register
from training.tables import Table, open_table
from training.tokens import TokenCache, token_cache

RUN_FORMAT = 1


def train(job: SftJob, lake: Lake | None = None, callbacks: Sequence[Any] = ()) -> dict[str, Any]:
    """Run a job, or go on with it, or say that it is done.

    Args:
        job: of `read_job`.
        lake: where the release lies; default `LAKE_HOME`.
        callbacks: more callbacks for the trainer.

    Returns:
        What summary.json holds: run_id, release, table, rows, dropped_too_long, steps, first_loss, last_loss, path.

    Raises:
        UsageError: the folder holds another run, or rows, model and template do not go together.
    """
    check_installed(job)
    lake = lake or Lake()
    folder = Path(job.output)
    with _held(folder):
        table = _pinned(lake, job, folder)
        run_id = H("run", "sft", json.dumps(job.as_json(), sort_keys=True), table.digest)
        if (folder / "summary.json").is_file():
            return {**json.loads((folder / "summary.json").read_bytes()), "already": True}
        return _run(job, lake, table, run_id, folder, callbacks)


def check_installed(job: SftJob) -> None:
    """Say which package is missing before anything is loaded.

    Raises:
        MissingExtraError: one of the extra `train` is.
    """
    packages = ["torch", "transformers", "datasets", "trl", "accelerate", "matplotlib"]
    for package in packages + (["peft"] if job.lora else []):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "train")


def _run(job: SftJob, lake: Lake, table: Table, run_id: str, folder: Path, callbacks: Sequence[Any]) -> dict[str, Any]:
    from training.stream import LakeStream
    from training.trainer import Keeper, StreamTrainer, last_checkpoint

    args, micro = _arguments(job, folder)
    store = lake.paths.workspace.parent / "cache"
    chief = args.process_index == 0
    with args.main_process_first(local=False):  # the others find what the first has made
        encoder, cache = _tokenised(job, lake, table, store)
        found = last_checkpoint(folder)
    start = Position(found[1]["epoch"], found[1]["index"]) if found else Position()
    done = found[1]["step"] if found else 0
    stream = LakeStream(
        cache, max_length=job.max_length, seed=job.seed, start=start,
        batch_size=micro * args.world_size, batches=(job.max_steps - done) * args.gradient_accumulation_steps,
        rank=args.process_index, world=args.world_size,
    )  # fmt: skip
    facts = {
        "run_id": run_id, "job": "sft", "table_name": table.name, "release": table.release.number,
        "digest": table.digest, "model": job.model, "config": json.dumps(job.as_json(), sort_keys=True),
        "rows": len(stream.order), "dropped_too_long": len(stream.too_long), "path": str(folder.resolve()),
    }  # fmt: skip
    if chief:
        preflight(cache, encoder, job.max_length, folder)
        row = entry(lake, "runs", state="started", steps=done, first_loss=None, last_loss=None, **facts)
        register(lake, "runs", row, {"run_id": run_id, "state": "started"})
    trainer = StreamTrainer(
        stream, model=load_model(job.model, store / "models"), args=args, processing_class=encoder.tokenizer,
        peft_config=_lora(job), callbacks=list(callbacks),
    )  # fmt: skip
    trainer.add_callback(Keeper(trainer, folder))
    began = time.monotonic()
    trainer.train(resume_from_checkpoint=str(found[0]) if found else None)
    if trainer.state.global_step != job.max_steps:
        raise InternalError(f"the run stopped after {trainer.state.global_step} steps; expected {job.max_steps}.")
    trainer.save_model(str(folder / "model"))
    summary: dict[str, Any] = {}
    if chief:
        encoder.tokenizer.save_pretrained(folder / "model")
        summary = _finish(lake, folder, facts, trainer.state.log_history, time.monotonic() - began)
    trainer.accelerator.wait_for_everyone()
    return summary


def _tokenised(job: SftJob, lake: Lake, table: Table, store: Path) -> tuple[ChatEncoder, TokenCache]:
    template = _template(job.chat_template) if job.chat_template else None
    encoder = ChatEncoder(load_tokenizer(job.model, store / "models"), template)
    with bar(table.rows, "tokenising") as tick:
        return encoder, token_cache(lake, table, encoder, job.where, store / "tokens", tick)


def _template(path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"chat_template {path} cannot be read ({error}). Name a Jinja file.") from error


def _arguments(job: SftJob, folder: Path) -> tuple[Any, int]:
    """Return the trainer's arguments and the rows of a forward pass on one process."""
    import torch
    from trl import SFTConfig

    world, gpu = int(os.environ.get("WORLD_SIZE", 1)), torch.cuda.is_available()
    micro = job.micro_batch_size or max(1, job.batch_size // world)
    if job.batch_size % (micro * world):
        raise UsageError(
            f"batch_size {job.batch_size} is not a multiple of micro_batch_size {micro} times {world} processes. "
            "Change one of them."
        )
    args = SFTConfig(
        output_dir=str(folder / "checkpoints"), max_steps=job.max_steps, learning_rate=job.learning_rate,
        per_device_train_batch_size=micro, gradient_accumulation_steps=job.batch_size // (micro * world),
        seed=job.seed, save_strategy="steps", save_steps=job.save_steps, save_total_limit=2, logging_steps=1,
        logging_nan_inf_filter=False, report_to=[], disable_tqdm=True,
        use_cpu=not gpu, bf16=gpu, activation_checkpointing=gpu,  # both are on by default, and fail on a CPU
        max_length=None, packing=False, shuffle_dataset=False, dataset_kwargs={"skip_prepare_dataset": True},
        remove_unused_columns=False, ignore_data_skip=True,
    )  # fmt: skip
    return args, micro


def _lora(job: SftJob) -> Any:
    if job.lora is None:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=job.lora.get("r", 16), lora_alpha=job.lora.get("alpha", 32), lora_dropout=job.lora.get("dropout", 0.0),
        target_modules=job.lora.get("target_modules", "all-linear"), task_type="CAUSAL_LM",
    )  # fmt: skip


def _pinned(lake: Lake, job: SftJob, folder: Path) -> Table:
    """Open the job's table; a run that has begun keeps its release, and its folder takes no other job."""
    said = {"format": RUN_FORMAT, "job": "sft", **job.as_json()}
    try:
        held = json.loads((folder / "release.json").read_bytes())
        config = json.loads((folder / "config.json").read_bytes())
    except FileNotFoundError:
        table = open_table(lake, job.table, job.release)
        facts = {
            "release": table.release.number, "table": table.name, "digest": table.digest, "rows": table.rows,
            "contract_version": table.contract_version, "home": lake.home,
        }  # fmt: skip
        if int(os.environ.get("RANK", 0)) == 0:
            write_json(folder / "config.json", said)
            write_json(folder / "release.json", facts)
        return table
    if differ := [k for k in said if k != "output" and said[k] != config.get(k)]:
        raise UsageError(
            f"{folder} holds a run with another {', '.join(differ)}; expected an empty folder or the same job. "
            "Choose another `output`."
        )
    table = open_table(lake, job.table, held["release"])
    if table.digest != held["digest"]:
        raise UsageError(f"{folder} began on digest {held['digest']}; this lake's release {held['release']} differs.")
    return table


def _finish(
    lake: Lake, folder: Path, facts: dict[str, Any], history: list[dict[str, Any]], seconds: float
) -> dict[str, Any]:
    """Write the curves and the steps, register the run, and last the summary that says it is done."""
    from training.trainer import read_steps

    losses = [(int(h["step"]), float(h["loss"]), float(h["learning_rate"])) for h in history if "loss" in h]
    with (folder / "loss.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "loss", "learning_rate"])
        writer.writerows(losses)
    draw_loss(losses, folder / "loss.png", f"{facts['table_name']}, release {facts['release']}")
    steps = read_steps(folder)
    pq.write_table(steps, folder / "steps.parquet")
    rows = steps.drop_columns("row").add_column(0, "run_id", pa.array([facts["run_id"]] * len(steps), pa.string()))
    register(lake, "run_steps", rows, {"run_id": facts["run_id"]})
    ends = {"steps": losses[-1][0], "first_loss": losses[0][1], "last_loss": losses[-1][1]}
    row = entry(lake, "runs", state="finished", **facts, **ends)
    register(lake, "runs", row, {"run_id": facts["run_id"], "state": "finished"})
    summary = {**{k: v for k, v in facts.items() if k != "config"}, **ends, "seconds": round(seconds, 1)}
    write_json(folder / "summary.json", summary)
    return {**summary, "already": False}


def draw_loss(losses: Sequence[tuple[int, float, float]], path: Path, title: str) -> None:
    """Draw a loss curve as a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([step for step, _, _ in losses], [loss for _, loss, _ in losses], marker=".")
    axes.set(xlabel="step", ylabel="loss (mean over trained tokens)", title=title)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keep a second process from running the same job; the kernel frees the lock of a killed one."""
    folder.mkdir(parents=True, exist_ok=True)
    if int(os.environ.get("RANK", 0)):
        yield
        return
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"{folder} is in use by another process that runs this job. Wait for it.") from error
        yield
