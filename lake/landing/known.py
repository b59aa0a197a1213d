"""Which records of a source are there already, and so do not land again.

What a look-up costs follows what is asked for, not the lake (tests/bench/bench_land_known.py): the statistics in the
log leave out files of other sources and other ids, in the rest ids are searched in the index that each file carries
(`lake.storage.key_index`), and hits are confirmed by their rows. Of a file whose ids form a chain, the first id
decides: where it is new, so are all behind it, and none is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from lake.landing.inputs import InputFile
from lake.landing.ledger import Ledger
from lake.landing.records import Identified
from lake.storage import table
from lake.storage.lookup import find_rows, may_have
from lake.storage.parquet import delete_files


class TableIds:
    """The ids of one raw table, on the version that the next commit is worked out on.

    Attributes:
        uri: the table.
        schema: of its contract.
        base: that version.
    """

    def __init__(self, base: table.Snapshot, source: str, columns: tuple[str, ...]) -> None:
        """Begin with a version of a table.

        Args:
            base: the version.
            source: that of the ids.
            columns: the id's column, and others of strings that `among` returns beside it.
        """
        self.uri = base.uri
        self.schema = base.schema
        self.base = base
        self._source = source
        self._columns = columns

    def among(self, ids: Collection[str], files: Iterable[str] | None = None) -> pa.Table:
        """Return the rows of those of some ids that the table has.

        Args:
            ids: ids to look for; a hash of the source among other things, so that no other source has one of them.
            files: look in these of its files only.
        """
        searched = self._possible(ids, self.base.files if files is None else files)
        return find_rows(searched, self._columns, self._columns[0], ids)

    def may_have(self, ids: Collection[str]) -> set[str]:
        """Return those of some ids that the table has, and hardly ever another, without a look at its rows."""
        return may_have(self._possible(ids, self.base.files), self._columns[0], ids)

    def _possible(self, ids: Collection[str], files: Iterable[str]) -> list[str]:
        """Return those of some files that may have some ids, by the statistics in the log."""
        if not ids:
            return []
        of_source = self.base.files_with("source", [self._source])
        possible = set(of_source).intersection(self.base.files_with(self._columns[0], ids))
        return [file for file in files if file in possible]

    def commit(self, prepare: Callable[[list[str] | None], list[table.NewFile]], note: Mapping[str, str]) -> None:
        """Commit new files, and whenever somebody else has committed before, work them out again.

        Args:
            prepare: gives the files to commit. It is called with None first, and at a retry with the files that
                others have committed since the last call, in which ids of ours may stand now.
            note: facts for the commit's metadata.

        Raises:
            BusyError: others committed at every try; the files are deleted, as after any error of `prepare`.
        """
        is_retry = False
        uncommitted: list[table.NewFile] = []

        def attempt() -> table.Snapshot:
            nonlocal is_retry, uncommitted
            fresh: list[str] | None = None
            if is_retry:
                before = set(self.base.files)
                self.base = table.create(self.uri, self.schema)
                fresh = [f for f in self.base.files if f not in before]
            is_retry = True
            files = prepare(fresh)
            # Only a conflict says for sure that they are not in the table: after any other error of the commit, such
            # as a lost connection, they may be, and stay.
            uncommitted = []
            try:
                return table.commit(self.base, files, note=note)
            except table.CommitConflict:
                uncommitted = files
                raise

        try:
            self.base = table.retry_on_conflict(self.uri, attempt)
        except BaseException:
            with suppress(Exception):  # the error under way is the one to be seen
                delete_files(uncommitted)
            raise


@dataclass(frozen=True)
class Lookup:
    """What the tables say of some ids.

    Attributes:
        landed: those that are landed.
        rejected: those that are rejected.
        amended: those that are landed with other licence or options, which this landing replaces.
    """

    landed: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)
    amended: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class SortedBlock:
    """The records of a block, sorted.

    Attributes:
        keep: per record, whether it lands.
        new_rejects: indexes of records that cannot be read, and are not known as such.
        already: number of records and rejects that are there.
    """

    keep: list[bool]
    new_rejects: list[int] = field(default_factory=list)
    already: int = 0


class KnownRecords:
    """What is landed and rejected of a source, and which of the files being read are past all of it.

    Attributes:
        records: ids of the raw table of the kind.
        rejects: ids of raw.rejects.
    """

    def __init__(self, ledger: Ledger, amend: bool) -> None:
        """Take the tables as the ledger has them.

        Args:
            ledger: the source's landings.
            amend: other licence or options of what is there are replaced, instead of an error.
        """
        facts = ledger.facts
        self.records = TableIds(ledger.made(facts.kind), facts.source, ("record_id", "license", "options"))
        self.rejects = TableIds(ledger.made("rejects"), facts.source, ("reject_id",))
        self._ledger = ledger
        self._amend = amend
        # True: the chain is past what is known; False: its ids must be looked up; absent: not looked at yet.
        self._is_new: dict[InputFile, bool] = {}

    def is_new(self, file: InputFile) -> bool:
        """Say whether all that follows of a file is new, without a look."""
        return self._is_new.get(file, False)

    def look_again(self, *files: InputFile) -> None:
        """Have the next ids of some files looked up; without arguments of all, since others have committed."""
        for file in files or self._is_new:
            self._is_new[file] = False

    def forget(self, file: InputFile) -> None:
        """Drop what was noted of a file that has ended."""
        self._is_new.pop(file, None)

    def look_up(self, items: list[Identified]) -> Lookup:
        """Look up the ids of some blocks; those of files that are new are not looked up.

        Args:
            items: blocks of any files, each file's in order.

        Raises:
            SourceError: some are landed with other licence or options.
        """
        firsts: dict[InputFile, str] = {}
        for item in items:
            if item.file not in self._is_new and item.is_chained:
                # A reject says nothing of what follows it (see `sort_out`): the first that can be read decides.
                readable = next((x for k, x in enumerate(item.ids) if k not in item.block.problems), None)
                if readable is not None:
                    firsts.setdefault(item.file, readable)
        possible = self.records.may_have(firsts.values()) | self.rejects.may_have(firsts.values())
        for file, first in firsts.items():
            self._is_new[file] = first not in possible
        ids = sorted({x for item in items if not self.is_new(item.file) for x in item.ids})
        rows = self.records.among(ids)
        rejected = self.rejects.among(ids)["reject_id"].to_pylist()
        return Lookup(set(rows["record_id"].to_pylist()), set(rejected), self.check_facts(rows))

    def check_facts(self, landed: pa.Table) -> set[str]:
        """Return the ids of records that are there with other licence or options.

        Args:
            landed: record_id, license and options of what is there.

        Raises:
            SourceError: there are such, and this landing does not amend.
        """
        others = self._ledger.others(landed) if landed.num_rows else {}
        if others and not self._amend:
            raise self._ledger.differ(f"{len(others)} of the records read", next(iter(others.values())))
        return set(others)

    def sort_out(self, item: Identified, known: Lookup, in_batch: Set[str]) -> SortedBlock:
        """Say which records of a block land; a file that is past what is known is new from now on.

        Args:
            item: the block.
            known: what the tables say of its ids; nothing for a new file.
            in_batch: ids of the batch in the making; nothing for a new file.
        """
        problems, is_chained = item.block.problems, item.is_chained
        in_block: set[str] = set()
        keep, new_rejects, already = [], [], 0
        for index, record_id in enumerate(item.ids):
            is_bad = index in problems
            is_repeated = record_id in in_batch or record_id in in_block
            is_known = is_repeated or record_id in known.landed or (is_bad and record_id in known.rejected)
            keep.append(not is_known and not is_bad)
            if is_known:
                already += 1
                continue
            in_block.add(record_id)
            if is_bad:
                new_rejects.append(index)
            elif is_chained and record_id not in known.rejected:
                # Every id behind a new one is new: it hashes this one. A new reject says nothing: another process, or
                # one that was killed, may have committed a batch's records and not its rejects.
                self._is_new[item.file] = True
        return SortedBlock(keep, new_rejects, already)
