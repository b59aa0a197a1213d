"""TRL's SFTTrainer over a LakeStream, with a record of what was really trained.

What the trainer may not do, and why (all seen with trl 1.16 and transformers 5.24):
- prepare the dataset: it filters over-long rows and shuffles, so one long row shifts every later step;
- count its own way back into the data on resume: that is wrong after the first pass over a finite stream;
- prefetch through accelerate: what the collator saw is then not what was trained.
So the rows come tokenised, the loader is a plain torch one over this rank's share, and each batch carries its row
numbers, which `training_step` takes out, gathers and holds against the stream's arithmetic.

This module imports torch and trl; import it where it is used.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lake.errors import GateError, InternalError, MissingExtraError
from training.files import write_json, write_whole
from training.order import Position
from training.stream import LakeStream

try:
    import torch
    from datasets import IterableDataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import SFTTrainer
except ImportError as error:
    raise MissingExtraError(error.name or "trl", "train") from error

POSITION = "lake_position.json"
INT, TEXT = pa.int64(), pa.string()
STEPS = pa.schema([("step", INT), ("position", INT), ("epoch", INT), ("row", INT), ("example_id", TEXT)])


class StreamTrainer(SFTTrainer):
    """SFTTrainer that trains exactly the rows of a stream.

    Args:
        stream: this rank's rows, from the position that training goes on at.
        kwargs: of SFTTrainer, without `train_dataset`.
    """

    def __init__(self, stream: LakeStream, **kwargs: Any) -> None:
        ids, labels = stream.cache.row(stream.rows_of(0)[0])
        sample = {"input_ids": ids.tolist(), "labels": labels.tolist()}
        # SFTTrainer takes HF datasets only and looks at row 0 several times; this one row is all that it ever sees.
        super().__init__(train_dataset=IterableDataset.from_generator(_one, gen_kwargs={"row": [sample]}), **kwargs)
        self.remove_callback(PrinterCallback)  # it prints on stdout, which is for results
        self.stream = stream
        self.batches_trained = 0
        self.trained: list[tuple[int, int, int]] = []  # step, place, row: since the last checkpoint

    @property
    def position(self) -> Position:
        """Where the stream stands behind what was trained."""
        return self.stream.position(self.batches_trained * self.stream.batch_size)

    def get_train_dataloader(self) -> Any:
        """Return a loader over this rank's share; no accelerate, which would share out and prefetch again."""
        # Its own generator: torch's would move the global one, and a resumed run would draw other dropout masks.
        generator = torch.Generator()
        generator.manual_seed(self.args.seed)
        return torch.utils.data.DataLoader(
            self.stream, self.args.per_device_train_batch_size, collate_fn=self._collate, generator=generator
        )

    def training_step(self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Any:
        """Take the row numbers out, hold them against the stream, and train the batch."""
        mine = inputs.pop("row").to(self.accelerator.device)
        rows = [int(r) for r in self.accelerator.gather(mine)]
        expected = self.stream.rows_of(self.batches_trained)
        if rows != expected:
            raise InternalError(f"batch {self.batches_trained} held rows {rows} and the stream says {expected}.")
        first = self.stream.start + self.batches_trained * self.stream.batch_size
        step = self.state.global_step + 1
        self.trained += [(step, first + i, row) for i, row in enumerate(rows)]
        self.batches_trained += 1
        return super().training_step(model, inputs, num_items_in_batch)

    def _collate(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        batch: dict[str, Any] = self.data_collator([{k: r[k] for k in ("input_ids", "labels")} for r in rows])
        return {**batch, "row": torch.tensor([r["row"] for r in rows])}


class Keeper(TrainerCallback):
    """Writes what was trained beside each checkpoint, and the stream's position last: then the checkpoint counts.

    Args:
        trainer: whose record it keeps.
        folder: the run folder.
    """

    def __init__(self, trainer: StreamTrainer, folder: Path) -> None:
        self.trainer = trainer
        self.folder = folder

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Say the loss on stderr, and stop where it is no number."""
        loss = (logs or {}).get("loss")
        if loss is not None and self.trainer.is_world_process_zero():
            tty = sys.stderr.isatty()
            end = "\r" if tty and state.global_step < state.max_steps else "\n"
            if tty or state.global_step % self.every(state.max_steps) == 0 or state.global_step == state.max_steps:
                sys.stderr.write(f"step {state.global_step}/{state.max_steps}  loss {loss:.4f}{end}")
        if loss is not None and not math.isfinite(loss):
            rows = [row for step, _, row in self.trainer.trained if step == state.global_step]
            raise GateError(
                f"the loss of step {state.global_step} is {loss}; expected a number. It trained "
                f"{', '.join(self.trainer.stream.ids(rows))}. Look at these rows, or lower learning_rate."
            )

    @staticmethod
    def every(steps: int) -> int:
        """Steps between lines where no terminal shows them: some twenty lines a run."""
        return max(1, steps // 20)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the rows of the steps since the last checkpoint, then the position."""
        trainer, step = self.trainer, state.global_step
        trainer.accelerator.wait_for_everyone()  # every rank's part of the checkpoint is there
        if trainer.is_world_process_zero():
            if trainer.trained:
                _write_steps(self.folder / "steps" / f"{step:09d}.parquet", trainer)
            position = trainer.position
            said = {"step": step, "epoch": position.epoch, "index": position.index, "world": trainer.stream.world}
            write_json(Path(args.output_dir) / f"checkpoint-{step}" / POSITION, said)
        trainer.trained.clear()


def last_checkpoint(folder: Path) -> tuple[Path, dict[str, int]] | None:
    """Return the newest whole checkpoint of a run and its position, after clearing away what a kill left.

    A checkpoint without a position was being written; steps beyond the checkpoint will be trained again.
    """
    whole = []
    for path in (folder / "checkpoints").glob("checkpoint-*"):
        try:
            whole.append((path, json.loads((path / POSITION).read_bytes())))
        except FileNotFoundError:
            shutil.rmtree(path)
    whole.sort(key=lambda one: one[1]["step"])
    reached = whole[-1][1]["step"] if whole else 0
    for part in (folder / "steps").glob("*.parquet"):
        if int(part.stem) > reached:
            part.unlink()
    return whole[-1] if whole else None


def read_steps(folder: Path) -> pa.Table:
    """Return what a run trained, in order: step, position, epoch, row, example_id."""
    parts = sorted((folder / "steps").glob("*.parquet"))
    return pa.concat_tables([pq.read_table(p, schema=STEPS) for p in parts]) if parts else STEPS.empty_table()


def _write_steps(path: Path, trainer: StreamTrainer) -> None:
    steps, places, rows = (list(column) for column in zip(*trainer.trained, strict=True))
    epochs = [place // len(trainer.stream.order) for place in places]
    table = pa.table([steps, places, epochs, rows, trainer.stream.ids(rows)], schema=STEPS)
    path.parent.mkdir(exist_ok=True)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    write_whole(path, sink.getvalue().to_pybytes())


def _one(row: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield from row
