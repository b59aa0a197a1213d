"""A job's file: what it may say, checked before anything is loaded.

`Job` has the keys of every training method. A method's own job, such as `training.jobs.sft.SftJob`, adds the method's
name and what only this method knows.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml

from lake.errors import UsageError

WHY_REFUSED = {
    "packing": "the trainer's packing drops the row ids and packs inside batches of 1,000 rows",
    "padding_free": "it goes with packing",
    "shuffle_dataset": "the stream's order is decided by (release, seed, epoch)",
    "train_sampling_strategy": "it reorders rows behind the stream",
    "group_by_length": "it reorders rows behind the stream",
    "num_train_epochs": "the stream spans as many passes as max_steps needs",
    "truncation_mode": "rows over max_length are left out and listed; cutting them would cut the end-of-turn token",
    "assistant_only_loss": "masks are made before the trainer sees a row; `weight` 0 keeps a turn from training",
    "completion_only_loss": "masks are made before the trainer sees a row",
    "dataset_kwargs": "rows come tokenised",
    "gradient_accumulation_steps": "it follows from batch_size, micro_batch_size and the number of processes",
    "per_device_train_batch_size": "say micro_batch_size",
    "dataloader_num_workers": "rows come from memory maps; workers would only add copies",
}


@dataclass(frozen=True)
class Job:
    """A training job.

    Attributes:
        model: folder, hub id, or `wheel:smollm2`.
        output: run folder; relative to the job's file.
        max_steps: optimizer steps.
        release: number or tag; default the last when the run begins.
        table: published table.
        where: SQL predicate over it.
        chat_template: Jinja file; default the model's own.
        batch_size: rows of a step, over all processes.
        micro_batch_size: rows of a forward pass on one process; default what a step needs.
        learning_rate: its peak; it falls linearly to 0.
        max_length: tokens; longer rows are left out and listed.
        lora: {r, alpha, dropout, target_modules}; default all weights train.
        seed: of order and initialisation.
        save_steps: steps between checkpoints.
    """

    METHOD: ClassVar[str]

    model: str
    output: str
    max_steps: int
    release: int | str | None = None
    table: str = ""
    where: str | None = None
    chat_template: str | None = None
    batch_size: int = 8
    micro_batch_size: int | None = None
    learning_rate: float = 2e-5
    max_length: int = 2048
    lora: Mapping[str, Any] | None = None
    seed: int = 0
    save_steps: int = 100

    def as_json(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


AnyJob = TypeVar("AnyJob", bound=Job)
NUMBERS = ("max_steps", "batch_size", "micro_batch_size", "max_length", "save_steps")
LORA: dict[str, type | tuple[type, ...]] = {
    "r": int,
    "alpha": (int, float),
    "dropout": (int, float),
    "target_modules": (str, list),
}


def read_job(path: Path, job_type: type[AnyJob]) -> AnyJob:
    """Read and check a job's file.

    Args:
        path: YAML. Folders in it are relative to where it lies.
        job_type: the method's own, such as SftJob.

    Raises:
        UsageError: it cannot be read, or says something that a job does not know; the message names the key.
    """
    try:
        raw = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}. Expected a YAML file with model, output, max_steps."
        ) from error
    if not isinstance(raw, dict):
        raise UsageError(f"{path} holds {type(raw).__name__}; expected keys such as model, output, max_steps.")
    _check_keys(raw, job_type, path)
    with contextlib.suppress(KeyError, TypeError, ValueError):
        raw["learning_rate"] = float(raw["learning_rate"])  # YAML 1.1 takes 2e-5 for text
    job = job_type(**raw)
    _check_values(job, path)
    here = path.resolve().parent
    model = here / job.model if not job.model.startswith("wheel:") and (here / job.model).is_dir() else job.model
    template = str(here / job.chat_template) if job.chat_template else None
    return job_type(**{**raw, "model": str(model), "chat_template": template, "output": str(here / job.output)})


def _check_keys(raw: Mapping[str, Any], job_type: type[Job], path: Path) -> None:
    """Refuse unknown, refused and missing keys."""
    known = [f.name for f in fields(job_type)]
    for key in raw:
        if key in WHY_REFUSED:
            raise UsageError(f"{path}: {key} is not allowed: {WHY_REFUSED[key]}. Remove it.")
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(known)}."
            raise UsageError(f"{path}: {key} is no key of {job_type.METHOD} jobs. {hint}")
    if missing := [k for k in ("model", "output", "max_steps") if raw.get(k) is None]:
        raise UsageError(f"{path}: {', '.join(missing)} missing; expected model, output and max_steps. Add them.")


def _check_values(job: Job, path: Path) -> None:
    for name in NUMBERS:
        value = getattr(job, name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise UsageError(f"{path}: {name} is {value!r}; expected a whole number above 0.")
    if not isinstance(job.learning_rate, float) or not 0 < job.learning_rate < 1:
        raise UsageError(f"{path}: learning_rate is {job.learning_rate!r}; expected a number between 0 and 1.")
    if not isinstance(job.seed, int) or isinstance(job.seed, bool):
        raise UsageError(f"{path}: seed is {job.seed!r}; expected a whole number.")
    for name in ("model", "output", "table", "where", "chat_template"):
        value = getattr(job, name)
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{path}: {name} is {value!r}; expected text.")
    if job.lora is not None:
        _check_lora(job.lora, path)


def _check_lora(lora: Any, path: Path) -> None:
    if not isinstance(lora, dict):
        raise UsageError(f"{path}: lora is {lora!r}; expected a mapping such as {{r: 16, alpha: 32}}.")
    for key, value in lora.items():
        if key not in LORA:
            near = difflib.get_close_matches(str(key), LORA, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(LORA)}."
            raise UsageError(f"{path}: {key} is no key of lora. {hint}")
        if not isinstance(value, LORA[key]) or isinstance(value, bool):
            raise UsageError(f"{path}: lora.{key} is {value!r}; expected a number, or for target_modules names.")
