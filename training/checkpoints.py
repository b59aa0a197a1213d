"""What a run trained, kept beside its checkpoints, and the way back to the last whole one.

    steps/NNNNNNNNN.parquet                    rows of the steps up to a checkpoint
    checkpoints/checkpoint-N/lake_position.json  the stream's position, written last: with it the checkpoint counts

This module imports torch and trl; import it where it is used.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lake.errors import GateError, MissingExtraError
from lake.files import write_json, write_whole
from lake.progress import Show
from training.order import Position
from training.trainer import StreamTrainerMixin

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise MissingExtraError(error.name or "transformers", "train") from error

POSITION = "lake_position.json"
INT, TEXT = pa.int64(), pa.string()
STEPS = pa.schema([("step", INT), ("position", INT), ("epoch", INT), ("row", INT), ("example_id", TEXT)])


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint.

    Attributes:
        path: its folder.
        step: optimizer steps behind it.
        position: of the stream.
    """

    path: Path
    step: int
    position: Position


class CheckpointRecorder(TrainerCallback):
    """Writes what was trained beside each checkpoint, and the stream's position last: then the checkpoint counts.

    Args:
        trainer: whose rows it records.
        folder: the run folder.
        show: takes the steps done, the steps in all and the loss as text.
    """

    def __init__(self, trainer: StreamTrainerMixin, folder: Path, show: Show) -> None:
        self.trainer = trainer
        self.folder = folder
        self.show = show

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Show the loss, and stop where it is no number.

        Raises:
            GateError: it is infinite or no number; the message names the rows of the step.
        """
        loss = (logs or {}).get("loss")
        if loss is None:
            return
        self.show(state.global_step, state.max_steps, f"loss {loss:.4f}")
        if not math.isfinite(loss):
            rows = [trained.row for trained in self.trainer.trained if trained.step == state.global_step]
            raise GateError(
                f"the loss of step {state.global_step} is {loss}; expected a number. It trained "
                f"{', '.join(self.trainer.stream.ids(rows))}. Look at these rows, or lower learning_rate."
            )

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the rows of the steps since the last checkpoint, then the position."""
        trainer, step = self.trainer, state.global_step
        trainer.accelerator.wait_for_everyone()  # every rank's part of the checkpoint is there
        if trainer.is_world_process_zero():
            if trainer.trained:
                _write_steps(self.folder / "steps" / f"{step:09d}.parquet", trainer)
            position = {"step": step, **asdict(trainer.position), "world": trainer.stream.world}
            write_json(Path(args.output_dir) / f"checkpoint-{step}" / POSITION, position)
        trainer.trained.clear()


def last_checkpoint(folder: Path) -> Checkpoint | None:
    """Return the newest whole checkpoint of a run folder, after clearing away what a kill left.

    A checkpoint without a position was being written; steps beyond the checkpoint will be trained again.
    """
    checkpoints = []
    for path in (folder / "checkpoints").glob("checkpoint-*"):
        try:
            saved = json.loads((path / POSITION).read_bytes())
        except FileNotFoundError:
            shutil.rmtree(path)
        else:
            checkpoints.append(Checkpoint(path, saved["step"], Position(saved["epoch"], saved["index"])))
    newest = max(checkpoints, key=lambda checkpoint: checkpoint.step, default=None)
    for part in (folder / "steps").glob("*.parquet"):
        if int(part.stem) > (newest.step if newest else 0):
            part.unlink()
    return newest


def read_steps(folder: Path) -> pa.Table:
    """Return what a run trained, in order: step, position, epoch, row, example_id."""
    parts = sorted((folder / "steps").glob("*.parquet"))
    return pa.concat_tables([pq.read_table(part, schema=STEPS) for part in parts]) if parts else STEPS.empty_table()


def _write_steps(path: Path, trainer: StreamTrainerMixin) -> None:
    steps, places, epochs, rows = (list(column) for column in zip(*trainer.trained, strict=True))
    table = pa.table([steps, places, epochs, rows, trainer.stream.ids(rows)], schema=STEPS)
    path.parent.mkdir(exist_ok=True)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    write_whole(path, sink.getvalue().to_pybytes())
