"""The order of a stream: a pure function of (table digest, seed, epoch), and where a rank and a worker stand in it.

Rows lie in blocks of 1,024 on disk. Each epoch permutes the blocks, and the rows inside every window of 16 blocks, so
reading stays near in the files and no shuffle buffer exists that a resume could lose (datasets#7901). A permutation is
the argsort of splitmix64 over (key, row): integers only, the same on every machine and with every version of numpy.
Place p of the endless stream is row p mod n of epoch p div n; global batch k is places [k*b, (k+1)*b). So ranks and
workers only say who reads which places, never which places there are.

Beside the permuted blocks only the window that is being read is held, drawn when it is reached.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lake.errors import UsageError

BLOCK = 1024
WINDOW = 16  # blocks


@dataclass(frozen=True)
class Position:
    """A place between two rows of the stream.

    Attributes:
        epoch: passes over all rows that lie behind, from 0.
        index: rows of this pass that lie behind.
    """

    epoch: int = 0
    index: int = 0


def permutation(n: int, *key: str | int) -> np.ndarray:
    """Return a permutation of range(n), decided by the key alone.

    Args:
        n: at least 0.
        key: what it depends on.

    Returns:
        int64 of shape (n,).

    >>> permutation(5, "order", 1).tolist() == permutation(5, "order", 1).tolist()
    True
    """
    text = "\0".join(map(str, key)).encode()
    seed = np.uint64(int.from_bytes(hashlib.sha256(text).digest()[:8], "big"))
    with np.errstate(over="ignore"):
        z = (np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) + seed
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.argsort(z ^ (z >> np.uint64(31)), kind="stable")


class Order:
    """The endless order of some rows.

    Args:
        rows: ascending row numbers of the cache that take part (those of at most max_length tokens).
        digest: content digest of the table.
        seed: of the job.

    Raises:
        UsageError: no rows.
    """

    def __init__(self, rows: np.ndarray, digest: str, seed: int) -> None:
        if not len(rows):
            raise UsageError("no row is left to train on; expected at least one. Look at `where` and `max_length`.")
        self.rows = np.asarray(rows, dtype=np.int64)
        self.key = (digest, seed)
        blocks = self.rows // BLOCK
        self.starts = np.flatnonzero(np.r_[True, blocks[1:] != blocks[:-1]])
        self.sizes = np.diff(np.r_[self.starts, len(self.rows)])
        self._epoch: tuple[int, np.ndarray, np.ndarray] | None = None
        self._window: tuple[int, int, np.ndarray] | None = None

    def __len__(self) -> int:
        """Rows of an epoch."""
        return len(self.rows)

    def place(self, position: Position) -> int:
        """Return the number of rows before a position, over all epochs.

        Raises:
            UsageError: it lies outside an epoch of these rows.
        """
        if not 0 <= position.index <= len(self) or position.epoch < 0:
            raise UsageError(f"{position} lies outside an epoch of {len(self)} rows. Was it saved for another table?")
        return position.epoch * len(self) + position.index

    def position(self, place: int) -> Position:
        """Return the position behind `place` rows."""
        return Position(*divmod(place, len(self)))

    def take(self, start: int, stop: int) -> np.ndarray:
        """Return the row numbers of places of the endless stream.

        Args:
            start: first place, from 0.
            stop: place behind the last.

        Returns:
            int64 of shape (stop - start,).
        """
        parts = []
        while start < stop:
            epoch, index = divmod(start, len(self))
            window, first = self._window_at(epoch, index)
            part = window[index - first :][: stop - start]
            parts.append(part)
            start += len(part)
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def _window_at(self, epoch: int, index: int) -> tuple[np.ndarray, int]:
        """Return the permuted rows of the window that holds an index, and the index of its first row."""
        if self._epoch is None or self._epoch[0] != epoch:
            order = permutation(len(self.sizes), "blocks", *self.key, epoch)
            ends = np.cumsum(self.sizes[order])[WINDOW - 1 :: WINDOW]
            self._epoch = (epoch, order, ends if len(ends) and ends[-1] == len(self) else np.r_[ends, len(self)])
            self._window = None
        _, order, ends = self._epoch
        which = int(np.searchsorted(ends, index, side="right"))
        first = int(ends[which - 1]) if which else 0
        if self._window is None or self._window[:2] != (epoch, which):
            blocks = order[which * WINDOW : (which + 1) * WINDOW]
            rows = np.concatenate([self.rows[self.starts[b] :][: self.sizes[b]] for b in blocks])
            self._window = (epoch, which, rows[permutation(len(rows), "rows", *self.key, epoch, which)])
        return self._window[2], first


def share(batches: int, batch: int, rank: int, world: int, worker: int, workers: int) -> Iterator[tuple[int, int]]:
    """Say which places, counted from the stream's start, a worker of a rank reads.

    torch's DataLoader takes batches from its workers in turn, so worker w reads batches w, w + workers, ...; of each
    global batch a rank reads its contiguous share.

    Args:
        batches: global batches in all.
        batch: rows of a global batch; divisible by `world`.
        rank: of `world`.
        world: ranks.
        worker: of `workers`.
        workers: loader workers of each rank.

    Yields:
        (start, stop) for each of the rank's batches that this worker reads.

    Raises:
        UsageError: a batch is not divisible by `world`.
    """
    if batch % world:
        raise UsageError(f"a global batch of {batch} rows cannot be shared by {world} ranks; use a multiple of them.")
    own = batch // world
    for k in range(worker, batches, workers):
        yield k * batch + rank * own, k * batch + (rank + 1) * own
