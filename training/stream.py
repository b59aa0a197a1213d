"""LakeStream: a table of a release as a torch IterableDataset whose order, resume and sharing are exact.

    stream = LakeStream(cache, max_length=2048, seed=0, batch_size=32, batches=1000, rank=0, world=1)

The tokenised rows lie in a cache (`RowCache`; of chats, `training.tokens`) and their order is arithmetic
(`training.order`); what is left is to read the places of this rank and worker. A stream knows how many batches it
gives, gives them once, and says so when it is asked again: a trainer that restarts a pass silently trains rows twice
(transformers#33544).

This module imports torch; import it where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from lake.errors import InternalError, MissingExtraError, UsageError
from training.order import Order, Position, share

try:
    import torch
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError as error:
    raise MissingExtraError("torch", "train") from error


MAX_WORKERS = 1024


class RowCache(Protocol):
    """The rows of a table as a trainer's collator takes them, numbered in the order of their ids."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """What it holds; `digest` is that of the table, on which the order depends."""

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row, int64 of shape (rows,)."""

    def row(self, index: int) -> Mapping[str, Any]:
        """Return a row's columns; none is called `row`."""

    def ids(self, indices: np.ndarray) -> list[str]:
        """Return the row ids of some rows."""


class LakeStream(IterableDataset):
    """Rows of a table in the order of (digest, seed, epoch), from a position on.

    Args:
        cache: the rows.
        max_length: rows of more tokens are left out; None takes all.
        seed: of the order.
        batch_size: rows of a global batch, all ranks together.
        batches: global batches that this stream gives; it spans as many epochs as they need.
        start: where it begins.
        rank: this process, of `world`.
        world: number of processes.

    Iterating gives the columns of the cache's rows and `row`, the row's number; `ids` turns numbers into row ids.

    Raises:
        UsageError: fewer than no batches, empty batches, or no row of at most `max_length` tokens.
    """

    def __init__(
        self,
        cache: RowCache,
        *,
        max_length: int | None,
        seed: int,
        batch_size: int,
        batches: int,
        start: Position | None = None,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        if batches < 0 or batch_size < 1:
            raise UsageError(f"{batches} batches of {batch_size} rows were asked for; expected positive numbers.")
        lengths = cache.lengths
        fits = lengths <= (max_length if max_length is not None else lengths.max(initial=0))
        self.cache = cache
        self.too_long = cache.ids((~fits).nonzero()[0])
        self.order = Order(fits.nonzero()[0], cache.meta["digest"], seed)
        self.batch_size, self.batches, self.rank, self.world = batch_size, batches, rank, world
        self.start = self.order.place(start or Position())
        # Shared, because a loader's workers hold copies: a second pass is seen from whichever process starts it.
        self.started = torch.zeros(MAX_WORKERS, dtype=torch.uint8).share_memory_()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Give this rank's and worker's rows.

        Raises:
            InternalError: it was started before.
        """
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        if self.started[worker]:
            raise InternalError("the stream was started a second time; rows would train twice. Open a new one.")
        self.started[worker] = 1
        return self._rows(worker, workers)

    def rows_of(self, batch: int) -> list[int]:
        """Return the rows of a global batch, counted from the stream's start: what should train."""
        first = self.start + batch * self.batch_size
        return [int(r) for r in self.order.take(first, first + self.batch_size)]

    def position(self, rows: int) -> Position:
        """Return the position behind `rows` rows of this stream."""
        return self.order.position(self.start + rows)

    def ids(self, rows: list[int]) -> list[str]:
        """Return the row ids of some rows."""
        return self.cache.ids(np.asarray(rows, dtype=np.int64))

    def _rows(self, worker: int, workers: int) -> Iterator[dict[str, Any]]:
        for first, last in share(self.batches, self.batch_size, self.rank, self.world, worker, workers):
            for row in self.order.take(self.start + first, self.start + last):
                yield {**self.cache.row(int(row)), "row": int(row)}
