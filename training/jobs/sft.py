"""`lake train sft job.yaml`: a release's chats through TRL's SFTTrainer, row by row on record.

What is SFT's own: chats become token ids and a mask of the assistant's turns (`training.masks`), kept in a token cache,
and the trainer pads and trains them as they are. All else is `training.jobs.run`'s.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from lake.errors import UsageError
from lake.progress import progress
from lake.query.query import Lake
from training.checks import preflight
from training.jobs.config import Job
from training.jobs.run import OpenedRows, run_job
from training.masks import ChatEncoder
from training.models import load_tokenizer
from training.tables import Table
from training.tokens import token_cache

if TYPE_CHECKING:
    from training.stream import LakeStream
    from training.trainer import StreamTrainerMixin


@dataclass(frozen=True)
class SftJob(Job):
    """A supervised fine-tuning job; its table holds chats."""

    METHOD: ClassVar[str] = "sft"

    table: str = "train_sft"


def train(job: SftJob, lake: Lake | None = None, callbacks: Sequence[Any] = ()) -> dict[str, Any]:
    """Run a job, or go on with it, or say that it is done.

    Args:
        job: of `read_job`.
        lake: where the release lies; default `LAKE_HOME`.
        callbacks: more callbacks for the trainer.

    Returns:
        The summary of `run_job`, which also says what errors there are.
    """
    return run_job(job, _Sft(job), lake, callbacks)


@dataclass(frozen=True)
class _Sft:
    """Supervised fine-tuning, as a `training.jobs.run.Method`."""

    job: SftJob

    def arguments(self, common: Mapping[str, Any]) -> Any:
        from trl import SFTConfig

        return SFTConfig(**common, max_length=None, packing=False, shuffle_dataset=False)

    def open_rows(self, lake: Lake, table: Table, store: Path) -> OpenedRows:
        template = _read_template(self.job.chat_template) if self.job.chat_template else None
        encoder = ChatEncoder(load_tokenizer(self.job.model, store / "models"), template)
        with progress("tokenising", table.rows) as show:
            cache = token_cache(lake, table, encoder, self.job.where, store / "tokens", show)
        write_preflight = functools.partial(preflight, cache, encoder, self.job.max_length)
        return OpenedRows(cache, encoder.tokenizer, write_preflight)

    def trainer(self, stream: LakeStream, common: Mapping[str, Any]) -> StreamTrainerMixin:
        from training.trainer import StreamSftTrainer

        return StreamSftTrainer(stream, **common)


def _read_template(path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"chat_template {path} cannot be read ({error}). Name a Jinja file.") from error
