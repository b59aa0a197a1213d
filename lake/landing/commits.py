"""A batch's commit: records first, then rejects, then amendments, then each finished file's row in raw.landings.

In this order a landing killed anywhere is completed by another. Each commit compares and swaps on the version that the
known ids were looked up on. Where somebody else has committed, the new files alone are looked through for the batch's
ids, what is landed already is taken out, and the commit is tried again: two processes landing the same file end with
every record once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lake.config import git_commit
from lake.landing.batches import Batch
from lake.landing.inputs import InputFile
from lake.landing.known import KnownRecords
from lake.landing.ledger import Ledger
from lake.landing.results import Counts, FileResult
from lake.schema import contract
from lake.storage import table
from lake.storage.parquet import NewFile, delete_files, read_batches

REJECTS_BYTES = 128 << 20  # of payloads in one Arrow batch of rejects


class Committer:
    """Commits batches, and corrects the counts of records that somebody else has landed meanwhile."""

    def __init__(self, ledger: Ledger, known: KnownRecords, counts: defaultdict[InputFile, Counts]) -> None:
        """Take what a landing's commits have in common.

        Args:
            ledger: the source's landings.
            known: what is landed of it.
            counts: of the files being landed.
        """
        self._ledger = ledger
        self._facts = ledger.facts
        self._known = known
        self._counts = counts
        commit_id = git_commit(ledger.paths.project)
        self._note = {"contract_version": str(contract(ledger.paths.project, f"raw/{ledger.facts.kind}")["version"])}
        self._note |= {"git_commit": commit_id} if commit_id else {}

    def commit(self, batch: Batch) -> list[FileResult]:
        """Commit a batch; return what became of the files that end in it.

        Raises:
            SourceError: somebody else has landed records of it with other licence or options.
            BusyError: others committed at every try.
        """
        note = self._note | {"run_id": batch.batch_id}
        self._commit_records(batch, note)
        self._commit_rejects(batch, note)
        self._ledger.tables |= {self._facts.kind: self._known.records.base, "rejects": self._known.rejects.base}
        if batch.amended:
            self._ledger.append("amendments", self._amendment_rows(batch), note)
            self._ledger.amend(batch.amended)
        results = [FileResult(end, self._counts.pop(end.file, Counts())) for end in batch.ended]
        if results:
            rows = [result.row(self._facts, batch.batch_id, batch.now) for result in results]
            self._ledger.append("landings", rows, note)
        return results

    def _commit_records(self, batch: Batch, note: dict[str, str]) -> None:
        files = batch.finish_files()

        def prepare(fresh: list[str] | None) -> list[NewFile]:
            nonlocal files
            if fresh is not None:
                files = self._without_landed(batch, files, fresh)
            return files

        self._known.records.commit(prepare, note)

    def _without_landed(self, batch: Batch, files: list[NewFile], fresh: list[str]) -> list[NewFile]:
        """Take out of a batch the records that stand in new files of somebody else."""
        self._known.look_again()
        rows = self._known.records.among([x for _, ids in batch.landing for x in ids], fresh)
        if not rows.num_rows:
            return files
        batch.amended |= self._known.check_facts(rows)
        landed = set(rows["record_id"].to_pylist())
        for index, (file, ids) in enumerate(batch.landing):
            rest = [x for x in ids if x not in landed]
            self._counts[file] += Counts(landed=len(rest) - len(ids), already=len(ids) - len(rest))
            batch.landing[index] = (file, rest)
        kept = table.write(self._known.records.uri, self._known.records.schema, _without_ids(files, landed))
        delete_files(files)
        return kept

    def _commit_rejects(self, batch: Batch, note: dict[str, str]) -> None:
        rejects = self._known.rejects
        files: list[NewFile] = []

        def prepare(fresh: list[str] | None) -> list[NewFile]:
            nonlocal files
            delete_files(files)  # of the try before
            # At the first try all files are searched: rejects were snapshotted later than records, so that those of
            # somebody whose records are still to be met may stand there.
            self._leave_out_known_rejects(batch, fresh)
            rows = _reject_batches((row for _, row in batch.rejects), rejects.schema)
            files = table.write(rejects.uri, rejects.schema, rows)
            return files

        rejects.commit(prepare, note)

    def _leave_out_known_rejects(self, batch: Batch, fresh: list[str] | None) -> None:
        rows = self._known.rejects.among([row["reject_id"] for _, row in batch.rejects], fresh)
        known = set(rows["reject_id"].to_pylist())
        for file, row in batch.rejects:
            if row["reject_id"] in known:
                self._counts[file] += Counts(rejected=-1, already=1)
        batch.rejects = [(file, row) for file, row in batch.rejects if row["reject_id"] not in known]

    def _amendment_rows(self, batch: Batch) -> list[dict[str, Any]]:
        facts = self._facts
        return [
            {
                "record_id": record_id, "kind": facts.kind, "source": facts.source, "license": facts.license,
                "options": facts.options, "batch_id": batch.batch_id, "amended_at": datetime.now(UTC),
            }
            for record_id in sorted(batch.amended)
        ]  # fmt: skip


def _reject_batches(rows: Iterable[dict[str, Any]], columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Turn rejects into small batches: a payload may have 128 MiB."""
    waiting: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        if waiting and size + len(row["payload"]) > REJECTS_BYTES:
            yield pa.RecordBatch.from_pylist(waiting, schema=columns)
            waiting, size = [], 0
        waiting.append(row)
        size += len(row["payload"])
    if waiting:
        yield pa.RecordBatch.from_pylist(waiting, schema=columns)


def _without_ids(files: list[NewFile], record_ids: set[str]) -> Iterator[pa.RecordBatch]:
    """Read files without some records."""
    unwanted = pa.array(sorted(record_ids), pa.string())
    for batch in read_batches(file.path for file in files):
        yield batch.filter(pc.invert(pc.is_in(batch["record_id"], unwanted)))
