"""The batch in the making: what one commit will hold.

Its records are streamed into Parquet files beside the table's own, which no reader opens before the commit lists them.
"""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from lake.landing.inputs import InputFile
from lake.landing.results import FileEnd
from lake.storage import table
from lake.storage.parquet import NewFile, delete_files


class _BackgroundWriter:
    """Writes record batches to Parquet files in a thread of its own: compression releases Python's lock."""

    def __init__(self, uri: str, columns: pa.Schema) -> None:
        self._files: list[NewFile] = []
        self._error: BaseException | None = None
        self._queue: queue.Queue[pa.RecordBatch | None] = queue.Queue(maxsize=4)
        self._thread = threading.Thread(target=self._run, args=(uri, columns), daemon=True)
        self._thread.start()

    def put(self, batch: pa.RecordBatch | None) -> None:
        """Hand over rows, None at their end; waits while the writer is behind."""
        while self._error is None:  # a writer that has failed takes nothing more: `finish` says why
            try:
                return self._queue.put(batch, timeout=1)
            except queue.Full:
                continue

    def finish(self) -> list[NewFile]:
        """Wait for the files.

        Raises:
            BaseException: what the writing thread raised.
        """
        files = self.stop()
        if self._error is not None:
            raise self._error
        return files

    def stop(self) -> list[NewFile]:
        """Wait for the files; where writing has failed, there are none, and nothing is raised."""
        self.put(None)
        self._thread.join()
        return self._files

    def _run(self, uri: str, columns: pa.Schema) -> None:
        try:
            self._files = table.write(uri, columns, iter(self._queue.get, None))
        except BaseException as error:
            self._error = error


@dataclass
class Batch:
    """What one commit will hold.

    Attributes:
        batch_id: random.
        now: time of the batch, its records' `landed_at`.
        started: monotonic clock, in seconds.
        bytes: of the input that it covers.
        landing: per block, the file and the ids of its records that land.
        rejects: file and row of raw.rejects.
        amended: ids that are landed with other licence or options.
        ended: files that end in it.
    """

    batch_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.monotonic)
    bytes: int = 0
    landing: list[tuple[InputFile, list[str]]] = field(default_factory=list)
    rejects: list[tuple[InputFile, dict[str, Any]]] = field(default_factory=list)
    amended: set[str] = field(default_factory=set)
    ended: list[FileEnd] = field(default_factory=list)
    _firsts: set[str] = field(default_factory=set)
    _ids: set[str] | None = None
    _writer: _BackgroundWriter | None = None

    def ids(self) -> Set[str]:
        """Return the ids of the batch's records and rejects; kept from the first time that it is asked for."""
        if self._ids is None:
            self._ids = {x for _, ids in self.landing for x in ids} | {row["reject_id"] for _, row in self.rejects}
        return self._ids

    def begins_like(self, record_id: str) -> bool:
        """Say whether a block of the batch, or one of its rejects, begins with an id."""
        return record_id in self._firsts

    def add_records(self, file: InputFile, ids: list[str], rows: pa.RecordBatch, uri: str) -> None:
        """Take records of a block.

        Args:
            file: their file.
            ids: their ids, at least one.
            rows: their rows of the raw table.
            uri: the raw table.
        """
        self.landing.append((file, ids))
        self._remember(ids)
        if self._writer is None:
            self._writer = _BackgroundWriter(uri, rows.schema)
        self._writer.put(rows)

    def add_reject(self, file: InputFile, row: dict[str, Any]) -> None:
        """Take a record that cannot be read.

        Args:
            file: its file.
            row: its row of raw.rejects.
        """
        self.rejects.append((file, row))
        self._remember([row["reject_id"]])

    def finish_files(self) -> list[NewFile]:
        """Wait for the Parquet files of the records; nothing can be added afterwards.

        Raises:
            BaseException: what the writing thread raised.
        """
        writer, self._writer = self._writer, None
        return writer.finish() if writer else []

    def abort(self) -> None:
        """Delete the files that would have been committed.

        Called while an error is under way, which is the one to be seen: neither the writer's own nor one of the
        deletion takes its place. What stays of the files is invisible.
        """
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(Exception):
                delete_files(writer.stop())

    def _remember(self, ids: list[str]) -> None:
        self._firsts.add(ids[0])
        if self._ids is not None:
            self._ids.update(ids)
