"""A mixin that makes TRL's trainers train exactly the rows of a LakeStream, and know which they trained.

    class StreamSftTrainer(StreamTrainerMixin, SFTTrainer): ...

What a trainer may not do, and why (all seen with trl 1.16 and transformers 5.24):
- prepare the dataset: it filters over-long rows and shuffles, so one long row shifts every later step;
- count its own way back into the data on resume: that is wrong after the first pass over a finite stream;
- prefetch through accelerate: what the collator saw is then not what was trained.
So the rows come as the trainer's collator takes them, the loader is a plain torch one over this rank's share, and each
batch carries its row numbers, which `training_step` takes out, gathers and holds against the stream's arithmetic.

| trainer     | columns of a row                                 | collator                                     |
|-------------|--------------------------------------------------|----------------------------------------------|
| SFTTrainer  | input_ids, labels                                | the trainer's                                |
| DPOTrainer  | prompt_ids, chosen_ids, rejected_ids (lists)     | the trainer's                                |
| KTOTrainer  | prompt_ids, completion_ids, label                | must add KL_completion_ids: TRL makes them   |
|             |                                                  | from a batch's rows when it prepares a table |
| GRPOTrainer | prompt, and what the reward functions ask for    | none; a row stands num_generations times in  |
|             |                                                  | a row's batch                                |

This module imports torch and trl; import it where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lake.errors import InternalError, MissingExtraError, UsageError
from training.order import Position
from training.stream import LakeStream

try:
    import torch
    from datasets import IterableDataset
    from transformers import PrinterCallback, Trainer
    from trl import SFTTrainer
except ImportError as error:
    raise MissingExtraError(error.name or "trl", "train") from error


class TrainedRow(NamedTuple):
    """A row that was trained.

    Attributes:
        step: optimizer step, from 1.
        place: of the endless stream, from 0.
        epoch: of the stream, from 0.
        row: its number in the cache.
    """

    step: int
    place: int
    epoch: int
    row: int


class StreamTrainerMixin(Trainer):
    """Makes a trainer of TRL train exactly the rows of a stream; stands before the trainer among the bases.

    Args:
        stream: this rank's rows, from the position that training goes on at.
        kwargs: of the trainer, without `train_dataset`.

    Attributes:
        trained: the rows of the steps since the list was last emptied.

    Raises:
        UsageError: the arguments make a trainer reuse what it generated, or split a row's completions.
    """

    def __init__(self, stream: LakeStream, **kwargs: Any) -> None:
        self.stream = stream
        self.batches_trained = 0
        self.trained: list[TrainedRow] = []
        row = stream.cache.row(stream.rows_of(0)[0])
        sample = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in row.items()}
        # TRL takes HF datasets only and looks at row 0 several times; this one row is all that it ever sees.
        super().__init__(train_dataset=IterableDataset.from_generator(_rows, gen_kwargs={"rows": [sample]}), **kwargs)
        self.remove_callback(PrinterCallback)  # it prints on stdout, which is for results
        self.copies = copies_of_a_row(self.args)
        self._check_generation()

    @property
    def position(self) -> Position:
        """Where the stream stands behind what was trained."""
        return self.stream.position(self.batches_trained * self.stream.batch_size)

    def get_train_dataloader(self) -> Any:
        """Return a loader over this rank's share; no accelerate, which would share out and prefetch again."""
        # Its own generator: torch's would move the global one, and a resumed run would draw other dropout masks.
        generator = torch.Generator()
        generator.manual_seed(self.args.seed)
        size = self.args.per_device_train_batch_size // self.copies
        return torch.utils.data.DataLoader(self.stream, size, collate_fn=self._collate, generator=generator)

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        """Take the row numbers out, hold them against the stream, and train the batch.

        Args:
            model: to train.
            inputs: a batch of `get_train_dataloader`.
            num_items_in_batch: trained tokens of the step, where the loss is their mean.

        Raises:
            InternalError: the batch holds other rows than the stream gives here, or in another order.
        """
        own = torch.as_tensor(_take_row_numbers(inputs))[:: self.copies]
        rows = [int(row) for row in self.accelerator.gather(own.to(self.accelerator.device))]
        expected = self.stream.rows_of(self.batches_trained)
        if rows != expected:
            raise InternalError(f"batch {self.batches_trained} held rows {rows} and the stream says {expected}.")
        behind = self.batches_trained * self.stream.batch_size
        for i, row in enumerate(rows, behind):
            epoch = self.stream.position(i).epoch
            self.trained.append(TrainedRow(self.state.global_step + 1, self.stream.start + i, epoch, row))
        self.batches_trained += 1
        return super().training_step(model, inputs, num_items_in_batch)

    def _prepare_dataset(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """Leave rows as they are: they come as the collator takes them. Every TRL trainer that prepares calls this."""
        return dataset

    def _collate(self, rows: list[dict[str, Any]]) -> Any:
        """Make a batch of the collator's and add the row numbers."""
        rows = [row for row in rows for _ in range(self.copies)]
        numbers = [row["row"] for row in rows]
        batch = self.data_collator([{name: row[name] for name in row if name != "row"} for row in rows])
        if isinstance(batch, list):  # GRPO's collator changes nothing, since its trainer makes sequences of prompts
            return [{**row, "row": number} for row, number in zip(batch, numbers, strict=True)]
        return {**batch, "row": torch.tensor(numbers)}

    def _check_generation(self) -> None:
        if self.args.per_device_train_batch_size % self.copies:
            raise UsageError(
                f"per_device_train_batch_size {self.args.per_device_train_batch_size} is no multiple of "
                f"num_generations {self.copies}; expected all completions of a row on one process. Change one of them."
            )
        # A generation that serves several steps is shuffled and cut up, so a step's rows would not be the batch's.
        for name in ("steps_per_generation", "num_iterations"):
            if getattr(self.args, name, 1) != 1:
                raise UsageError(f"{name} is {getattr(self.args, name)}; expected 1, so that a step's rows are known.")


def copies_of_a_row(args: Any) -> int:
    """Return how often a row stands in its batch: for GRPO num_generations times, else once."""
    return int(getattr(args, "num_generations", 1))


class StreamSftTrainer(StreamTrainerMixin, SFTTrainer):
    """SFTTrainer over a stream."""


def _take_row_numbers(batch: Any) -> Any:
    if isinstance(batch, list):
        return [row.pop("row") for row in batch]
    return batch.pop("row")


def _rows(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield from rows
