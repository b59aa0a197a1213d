"""Batches of a landing: what is known is left out, the rest is written while it is read, and committed.

A batch is 128 MiB or 5 s of input, across files. Its records are streamed into Parquet files that nobody sees yet; the
commit compares and swaps on the version that the known ids were looked up on. Where somebody else has committed, his
new files alone are looked through for the batch's ids, the rows that he has landed are taken out, and the commit is
tried again: two processes landing the same file end with every record once. Records first, then rejects, then
amendments, then each finished file's row in raw.landings, so that a landing killed anywhere is completed by another.
"""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lake import schema
from lake.config import git_commit
from lake.errors import InternalError
from lake.landing.ledger import Known, Ledger
from lake.landing.records import FileRun, Identified, landing_row, record_rows, reject_row
from lake.storage import table

BATCH_BYTES = 128 << 20
BATCH_SECONDS = 5.0
LOOKUP_BYTES = 32 << 20  # records are held back until so many can be looked up at once


class Writer:
    """Writes record batches to Parquet files in a thread of its own: compression releases Python's lock."""

    def __init__(self, uri: str, rows: pa.Schema) -> None:
        self.files: list[table.NewFile] = []
        self._error: BaseException | None = None
        self._queue: queue.Queue[pa.RecordBatch | None] = queue.Queue(maxsize=4)
        self._thread = threading.Thread(target=self._run, args=(uri, rows), daemon=True)
        self._thread.start()

    def put(self, batch: pa.RecordBatch) -> None:
        """Hand over rows; waits while the writer is behind."""
        while self._error is None:
            try:
                return self._queue.put(batch, timeout=1)
            except queue.Full:
                continue

    def finish(self) -> list[table.NewFile]:
        """Wait for the files."""
        self.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self.files

    def _run(self, uri: str, rows: pa.Schema) -> None:
        try:
            self.files = table.write(uri, rows, iter(self._queue.get, None))
        except BaseException as error:
            self._error = error


@dataclass
class Batch:
    """What one commit will hold."""

    batch_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.monotonic)
    bytes: int = 0
    writer: Writer | None = None
    ids: list[tuple[FileRun, list[str]]] = field(default_factory=list)
    firsts: set[str] = field(default_factory=set)
    rejects: list[tuple[FileRun, dict[str, Any]]] = field(default_factory=list)
    amended: set[str] = field(default_factory=set)
    closed: list[FileRun] = field(default_factory=list)
    known_here: set[str] | None = None

    def has(self) -> set[str]:
        """Return the ids of the batch's records and rejects; kept from the first time that it is asked for."""
        if self.known_here is None:
            self.known_here = {i for _, ids in self.ids for i in ids} | {r["reject_id"] for _, r in self.rejects}
        return self.known_here

    def note(self, run: FileRun, ids: list[str]) -> None:
        """Remember ids of the batch."""
        self.ids.append((run, ids))
        self.remember(ids)

    def remember(self, ids: list[str]) -> None:
        """Remember ids as known within the batch."""
        if ids:
            self.firsts.add(ids[0])
        if self.known_here is not None:
            self.known_here.update(ids)


class Landing:
    """Takes identified blocks and finished files, and commits them batch by batch."""

    def __init__(self, ledger: Ledger, amend: bool) -> None:
        facts, paths = ledger.facts, ledger.paths
        self.ledger = ledger
        self.facts = facts
        self.amend = amend
        names = (facts.kind, "rejects", "landings", "amendments")
        rows = {name: schema.writer_schema(paths.project, f"raw/{name}") for name in names}
        self.rows, self.reject_rows = rows[facts.kind], rows["rejects"]
        self.landing_rows, self.amendment_rows = rows["landings"], rows["amendments"]
        commit_id = git_commit(paths.project)
        self.note = {"contract_version": str(schema.contract(paths.project, f"raw/{facts.kind}")["version"])}
        self.note |= {"git_commit": commit_id} if commit_id else {}
        self.records = Known(paths.table("raw", facts.kind), self.rows, "record_id", facts)
        self.rejects = Known(paths.table("raw", "rejects"), self.reject_rows, "reject_id", facts)
        self.landings = paths.table("raw", "landings")
        self.amendments = paths.table("raw", "amendments")
        self.records.move_on()
        self.rejects.move_on()
        self.batch = Batch()
        self.pending: list[Identified] = []
        self.pending_bytes = 0
        self.open: dict[int, FileRun] = {}
        self.finished: list[FileRun] = []

    def take(self, item: Identified) -> None:
        """Take the next block of a file."""
        self.open[id(item.run)] = item.run
        size = sum(map(len, item.block.payloads))
        self.batch.bytes += size
        if item.run.is_new and not self.pending:
            self._land(item, set(), set())
        else:
            self.pending.append(item)
            self.pending_bytes += size
            if self.pending_bytes >= LOOKUP_BYTES:
                self.settle()
        self._commit_when_due()

    def close(self, run: FileRun) -> None:
        """Take the end of a file."""
        self.open.pop(id(run), None)
        self.batch.closed.append(run)
        self._commit_when_due()

    def settle(self) -> None:
        """Look up what is pending, and land what is new."""
        pending, self.pending, self.pending_bytes = self.pending, [], 0
        firsts: dict[int, tuple[FileRun, str]] = {}
        for item in pending:
            if item.run.is_new is None and item.run.format and item.run.format.identity == "record":
                readable = next((x for k, x in enumerate(item.ids) if k not in item.block.problems), None)
                if readable is not None:
                    firsts.setdefault(id(item.run), (item.run, readable))
        landed, rejected = self._known([first for _, first in firsts.values()], check=False)
        for run, first in firsts.values():
            run.is_new = first not in landed and first not in rejected
        landed, rejected = self._known([x for i in pending if not i.run.is_new for x in i.ids], check=True)
        for item in pending:
            self._land(item, landed, rejected)

    def _known(self, ids: list[str], check: bool) -> tuple[set[str], set[str]]:
        """Return those of some ids that are landed, and those that are rejected."""
        landed = self.records.among(ids)
        if check:
            self._check_facts(landed)
        return set(landed["record_id"].to_pylist()), set(self.rejects.among(ids)["reject_id"].to_pylist())

    def _check_facts(self, landed: pa.Table) -> None:
        """Stop if records are there with other options, or note that they are amended."""
        others = self.ledger.others(landed) if landed.num_rows else {}
        if others and not self.amend:
            raise self.ledger.differ(f"{len(others)} of the records read", next(iter(others.values())))
        self.batch.amended.update(others)

    def _land(self, item: Identified, landed: set[str], rejected: set[str]) -> None:
        """Land what is new of a block, and count the rest."""
        run, block = item.run, item.block
        run.skipped.update(block.skipped)
        run.read += len(item.ids) + block.skipped.total()
        if not item.ids:
            return
        if run.is_new and item.ids[0] in self.batch.firsts:
            run.is_new = False  # another file of this batch begins the same
        is_plain = run.is_new and not block.problems
        keep = [True] * len(item.ids) if is_plain else self._sort_out(item, landed, rejected)
        count = sum(keep)
        run.landed += count
        if count:
            self.batch.note(run, item.ids if count == len(keep) else [x for x, k in zip(item.ids, keep) if k])  # noqa: B905
            if self.batch.writer is None:
                self.batch.writer = Writer(self.records.uri, self.rows)
            self.batch.writer.put(record_rows(item, keep, self.rows, self.facts, self.batch.batch_id, self.batch.now))

    def _sort_out(self, item: Identified, landed: set[str], rejected: set[str]) -> list[bool]:
        """Say which records of a block land; note its new rejects, count what is known."""
        run, problems = item.run, item.block.problems
        is_chain = run.format is not None and run.format.identity == "record"
        here = self.batch.has() if not run.is_new else set()
        mine: set[str] = set()
        keep = []
        for index, record_id in enumerate(item.ids):
            is_here = record_id in here or record_id in mine
            known = is_here or record_id in landed or (index in problems and record_id in rejected)
            keep.append(not known and index not in problems)
            if known:
                run.already += 1
                continue
            mine.add(record_id)
            if is_chain and index not in problems and record_id not in rejected:
                # Every id behind a new one is new: it hashes this one. A new reject says nothing: another process, or
                # one that was killed, may have committed a batch's records and not its rejects.
                run.is_new = True
            if index in problems:
                run.rejected += 1
                row = reject_row(item, index, self.facts, self.batch.batch_id, self.batch.now)
                self.batch.rejects.append((run, row))
                self.batch.remember([record_id])
        return keep

    def _commit_when_due(self) -> None:
        if self.batch.bytes >= BATCH_BYTES or time.monotonic() - self.batch.started >= BATCH_SECONDS:
            self.commit()

    def commit(self) -> None:
        """Commit the batch."""
        self.settle()
        batch = self.batch
        files = batch.writer.finish() if batch.writer else []
        batch.writer = None
        note = self.note | {"run_id": batch.batch_id}
        self._commit_records(files, note)
        self._commit_rejects(note)
        if batch.amended:
            table.append(self.amendments, self.amendment_rows, self._amendment_rows(), note)
            self.ledger.amend(dict.fromkeys(batch.amended, self.facts))
        if batch.closed:
            for run in batch.closed:
                _check_sum(run)
            rows = [landing_row(run, self.facts, batch.batch_id, batch.now) for run in batch.closed]
            table.append(self.landings, self.landing_rows, pa.Table.from_pylist(rows, schema=self.landing_rows), note)
        self.finished += batch.closed
        self.batch = Batch()

    def abort(self) -> None:
        """Leave out what is not committed; its files are removed."""
        if self.batch.writer is not None:
            _remove(self.batch.writer.finish())

    def _commit_records(self, files: list[table.NewFile], note: dict[str, str]) -> None:
        is_retry = False

        def attempt() -> table.Snapshot:
            nonlocal files, is_retry
            if is_retry:
                files = self._without_known(files, self.records.move_on())
            is_retry = True
            assert self.records.base is not None
            return table.commit(self.records.base, files, note=note)

        self.records.base = table.retry_on_conflict(self.records.uri, attempt)

    def _without_known(self, files: list[table.NewFile], fresh: list[str]) -> list[table.NewFile]:
        """Take out of a batch what somebody else has landed meanwhile."""
        for run in self.open.values():
            run.is_new = False if run.is_new else run.is_new
        found = self.records.among([i for _, ids in self.batch.ids for i in ids], fresh)
        if not found.num_rows:
            return files
        try:
            self._check_facts(found)
        except Exception:
            _remove(files)
            raise
        known = set(found["record_id"].to_pylist())
        for index, (run, ids) in enumerate(self.batch.ids):
            rest = [i for i in ids if i not in known]
            run.landed -= len(ids) - len(rest)
            run.already += len(ids) - len(rest)
            self.batch.ids[index] = (run, rest)
        left = table.write(self.records.uri, self.rows, _unlike(files, known))
        _remove(files)
        return left

    def _commit_rejects(self, note: dict[str, str]) -> None:
        # Rejects were snapshotted later than records, so at first all files are searched, then those that are new.
        fresh: list[str] | None = None
        is_retry = False

        def attempt() -> table.Snapshot | None:
            nonlocal fresh, is_retry
            if is_retry:
                fresh = self.rejects.move_on()
            is_retry = True
            self._leave_out_known_rejects(fresh)
            if not self.batch.rejects:
                return self.rejects.base
            assert self.rejects.base is not None
            rows = _reject_batches([row for _, row in self.batch.rejects], self.reject_rows)
            files = table.write(self.rejects.uri, self.reject_rows, rows)
            try:
                return table.commit(self.rejects.base, files, note=note)
            except table.CommitConflict:
                _remove(files)
                raise

        self.rejects.base = table.retry_on_conflict(self.rejects.uri, attempt)

    def _leave_out_known_rejects(self, files: list[str] | None) -> None:
        ids = [row["reject_id"] for _, row in self.batch.rejects]
        there = set(self.rejects.among(ids, files)["reject_id"].to_pylist())
        for run, row in self.batch.rejects:
            if row["reject_id"] in there:
                run.rejected, run.already = run.rejected - 1, run.already + 1
        self.batch.rejects = [(run, row) for run, row in self.batch.rejects if row["reject_id"] not in there]

    def _amendment_rows(self) -> pa.Table:
        facts, batch = self.facts, self.batch
        rows = [
            {
                "record_id": record_id, "kind": facts.kind, "source": facts.source, "license": facts.license,
                "options": facts.options, "batch_id": batch.batch_id, "amended_at": datetime.now(UTC),
            }
            for record_id in sorted(batch.amended)
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, schema=self.amendment_rows)


def _reject_batches(rows: list[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Turn rejects into small batches: a payload may have 128 MiB."""
    some: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        if some and size + len(row["payload"]) > BATCH_BYTES:
            yield pa.RecordBatch.from_pylist(some, schema=schema)
            some, size = [], 0
        some.append(row)
        size += len(row["payload"])
    if some:
        yield pa.RecordBatch.from_pylist(some, schema=schema)


def _unlike(files: list[table.NewFile], known: set[str]) -> Iterator[pa.RecordBatch]:
    """Read files again without some ids."""
    gone = pa.array(sorted(known), pa.string())
    for file in files:
        with pa.OSFile(file.path) if "://" not in file.path else _remote(file.path) as source:
            for batch in pq.ParquetFile(source).iter_batches(batch_size=1024):
                yield batch.filter(pc.invert(pc.is_in(batch["record_id"], gone)))


def _remote(path: str) -> Any:
    filesystem, where = table.filesystem_of(path)
    return filesystem.open_input_file(where)


def _remove(files: list[table.NewFile]) -> None:
    for file in files:
        if "://" in file.path:
            filesystem, where = table.filesystem_of(file.path)
            filesystem.delete_file(where)
        else:
            Path(file.path).unlink(missing_ok=True)


def _check_sum(run: FileRun) -> None:
    parts = run.landed + run.already + run.rejected + run.skipped.total()
    if run.read != parts:
        raise InternalError(
            f"{run.path}: {run.read} records read, {run.landed} landed, {run.already} already there, "
            f"{run.rejected} rejected, {run.skipped.total()} skipped; the sum must be equal. "
            "Please report this with the file."
        )
