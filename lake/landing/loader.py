"""The main thread of a landing: takes blocks and ends of files, and commits what is new batch by batch.

A batch is 128 MiB or 5 s of input, across files. What is known is in `known`, the batch in the making in `batches`, its
commit in `commits`.
"""

from __future__ import annotations

import time
from collections import defaultdict

from lake.landing.batches import Batch
from lake.landing.commits import Committer
from lake.landing.inputs import InputFile
from lake.landing.known import KnownRecords, Lookup, SortedBlock
from lake.landing.ledger import Ledger
from lake.landing.records import Identified, record_rows, reject_row
from lake.landing.results import Counts, FileEnd, FileResult

BATCH_BYTES = 128 << 20
BATCH_SECONDS = 5.0
LOOKUP_BYTES = 32 << 20  # records wait until so many can be looked up at once


class Loader:
    """One landing's records on their way into the tables.

    Attributes:
        results: the files whose records are committed.
    """

    def __init__(self, ledger: Ledger, amend: bool) -> None:
        """Begin a landing.

        Args:
            ledger: the source's landings.
            amend: other licence or options of what is there are replaced, instead of an error.
        """
        self.results: list[FileResult] = []
        self._facts = ledger.facts
        self._counts: defaultdict[InputFile, Counts] = defaultdict(Counts)
        self._known = KnownRecords(ledger, amend)
        self._committer = Committer(ledger, self._known, self._counts)
        self._batch = Batch()
        self._waiting: list[Identified] = []
        self._waiting_bytes = 0

    def take(self, item: Identified) -> None:
        """Take the next block of a file.

        Raises:
            SourceError: records are landed with other licence or options.
        """
        self._batch.bytes += item.bytes
        if self._known.is_new(item.file) and not self._waiting:
            self._land(item, Lookup())
        else:
            self._waiting.append(item)
            self._waiting_bytes += item.bytes
            if self._waiting_bytes >= LOOKUP_BYTES:
                self._land_waiting()
        self._commit_when_due()

    def end(self, end: FileEnd) -> None:
        """Take the end of a file.

        Raises:
            SourceError: records are landed with other licence or options.
        """
        if end.known_counts is not None:
            self._counts[end.file] = end.known_counts
        self._batch.ended.append(end)
        self._commit_when_due()

    def commit(self) -> None:
        """Commit the batch.

        Raises:
            SourceError: records are landed with other licence or options.
            BusyError: others committed at every try.
        """
        self._land_waiting()
        self.results += self._committer.commit(self._batch)
        for end in self._batch.ended:
            self._known.forget(end.file)
        self._batch = Batch()

    def abort(self) -> None:
        """Leave out what is not committed."""
        self._batch.abort()

    def _commit_when_due(self) -> None:
        if self._batch.bytes >= BATCH_BYTES or time.monotonic() - self._batch.started >= BATCH_SECONDS:
            self.commit()

    def _land_waiting(self) -> None:
        """Look up what waits, and land what is new of it."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        known = self._known.look_up(waiting)
        self._batch.amended |= known.amended
        for item in waiting:
            self._land(item, known)

    def _land(self, item: Identified, known: Lookup) -> None:
        """Add what is new of a block to the batch, and count all of it."""
        file, block, batch = item.file, item.block, self._batch
        if item.ids and self._known.is_new(file) and batch.begins_like(item.ids[0]):
            self._known.look_again(file)  # another file of this batch has begun with the same records
        is_new = self._known.is_new(file)
        if not item.ids or (is_new and not block.problems):
            sorted_block = SortedBlock([True] * len(item.ids))
            ids = item.ids
        else:
            sorted_block = self._known.sort_out(item, known, frozenset() if is_new else batch.ids())
            ids = [x for x, is_kept in zip(item.ids, sorted_block.keep, strict=True) if is_kept]
        for index in sorted_block.new_rejects:
            batch.add_reject(file, reject_row(item, index, self._facts, batch.batch_id, batch.now))
        if ids:
            columns = self._known.records.schema
            rows = record_rows(item, sorted_block.keep, columns, self._facts, batch.batch_id, batch.now)
            batch.add_records(file, ids, rows, self._known.records.uri)
        self._counts[file] += Counts(
            read=len(item.ids) + block.skipped.total(),
            landed=len(ids),
            already=sorted_block.already,
            rejected=len(sorted_block.new_rejects),
            skipped=block.skipped,
        )
