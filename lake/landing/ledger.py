"""What a source has landed before: its files, roots and options."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lake import schema
from lake.config import LakePaths
from lake.errors import SourceError
from lake.landing.records import Facts
from lake.sources.registry import DOCUMENT_FORMATS, FORMATS
from lake.storage import table
from lake.storage.parquet import read_batches

LANDING_COLUMNS = (
    "sha256", "path", "root", "format", "options", "first_id", "last_id", "read", "skipped", "bytes", "state",
    "landed_at",
)  # fmt: skip
BLOCK_ROWS = 1024  # rows of raw.landings that become Python objects at one time


def rows_of_source(state: table.Snapshot | None, columns: list[str], kind: str, source: str) -> pa.Table:
    """Read the rows of one kind and source of a table, batch by batch; files without the source are not opened.

    pyarrow.dataset would do it too; its import is slow, for it takes pandas along.

    Args:
        state: a version of a table; None has no rows.
        columns: columns to return.
        kind: value of the column kind.
        source: value of the column source.
    """
    kept: list[pa.RecordBatch] = []
    files = state.files_with("source", [source]) if state else []
    for batch in read_batches(files, list(dict.fromkeys([*columns, "kind", "source"])), rows=65_536):
        mask = pc.and_(pc.equal(batch["kind"], kind), pc.equal(batch["source"], source))
        if mask.true_count:
            kept.append(batch.select(columns).filter(mask))
    if not kept:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    return pa.Table.from_batches(kept)


@dataclass
class Ledger:
    """The landings of a source, and the raw tables that it lands in, each opened once.

    Attributes:
        paths: the lake.
        facts: what the landing at hand says.
        roots: roots of the source's landings, the latest first.
        sizes: sizes of its done files: one of another size cannot be known.
        columns: schemas that the raw tables are written in, those of the project's contracts.
        tables: the newest versions of these tables that this landing has read or made; None where there is no table.
    """

    paths: LakePaths
    facts: Facts
    roots: list[str] = field(default_factory=list)
    sizes: set[int] = field(default_factory=set)
    columns: dict[str, pa.Schema] = field(default_factory=dict)
    tables: dict[str, table.Snapshot | None] = field(default_factory=dict)
    _done: pa.Table = field(default_factory=lambda: pa.table({}))
    _by_sha256: dict[str, list[int]] = field(default_factory=dict)
    _blocks: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    _amended: dict[str, tuple[str | None, str]] | None = None

    def load(self) -> None:
        """Read the contracts and raw.landings.

        Raises:
            ContractError: landing cannot fill one of the tables, or one of another schema lies there.
        """
        # All contracts before the first table is made: one that is wrong stops the landing before a byte is written.
        # Records before rejects: see `Committer._commit_rejects`.
        for name in (self.facts.kind, "rejects", "amendments", "landings"):
            self.columns[name] = schema.writer_schema(self.paths.project, f"raw/{name}")
            self.tables[name] = state = table.snapshot(self.paths.table("raw", name))
            if state is not None:
                table.check_schema(state, self.columns[name])
        rows = rows_of_source(self.tables["landings"], list(LANDING_COLUMNS), self.facts.kind, self.facts.source)
        if rows.num_rows:
            rows = rows.filter(pc.equal(rows["state"], "done"))  # only recognised files fix the root
            rows = rows.sort_by([("landed_at", "descending")]).combine_chunks()
        self.roots = pc.unique(rows["root"]).to_pylist()
        self.sizes = set(pc.unique(rows["bytes"]).to_pylist())
        self._done = rows
        for index, sha256 in enumerate(rows["sha256"].to_pylist()):
            self._by_sha256.setdefault(sha256, []).append(index)

    def made(self, name: str) -> table.Snapshot:
        """Return a raw table as it was read; it is made where there was none."""
        state = self.tables[name] or table.create(self.paths.table("raw", name), self.columns[name])
        self.tables[name] = state
        return state

    def append(self, name: str, rows: list[dict[str, Any]], note: Mapping[str, str]) -> None:
        """Append rows to a raw table.

        Args:
            name: its name.
            rows: its rows.
            note: facts for the commit's metadata.

        Raises:
            BusyError: others committed at every try.
        """
        columns = self.columns[name]
        data = pa.Table.from_pylist(rows, schema=columns)
        self.tables[name] = table.append(self.paths.table("raw", name), columns, data, note, base=self.tables[name])

    def earlier_landing(self, sha256: str, path: str, named: str | None, amend: bool) -> dict[str, Any] | None:
        """Find the row of raw.landings of a file whose bytes have landed before.

        Args:
            sha256: of the file as it lies.
            path: below the root; a document file is known only under its own path.
            named: format asked for with `--format`.
            amend: other options are no reason to stop.

        Returns:
            The row of the latest such landing, or None: the file must be read.

        Raises:
            SourceError: it was landed with other options.
        """
        for row in map(self._row, self._by_sha256.get(sha256, ())):
            if row["format"] not in FORMATS or (named and named != row["format"]):
                continue
            if row["format"] in DOCUMENT_FORMATS and row["path"] != path:
                continue
            if row["options"] == self.facts.together:
                return row
            if not amend:
                raise self.differ(path, row["options"])
            return None
        return None

    def _row(self, index: int) -> dict[str, Any]:
        """Return a row of a done file; rows become Python objects block by block, for most are never asked for."""
        block, place = divmod(index, BLOCK_ROWS)
        if block not in self._blocks:
            self._blocks[block] = self._done.slice(block * BLOCK_ROWS, BLOCK_ROWS).to_pylist()
        return self._blocks[block][place]

    def differ(self, path: str, before: str) -> SourceError:
        """Say that records are there with other facts.

        Args:
            path: the file, or how many of its records.
            before: their licence and options, as JSON.
        """
        return SourceError(
            f"records of {path} are already in source {self.facts.source!r} with {before}; this landing says "
            f"{self.facts.together}. Pass the same options, or --amend to let the new ones count from now on."
        )

    def others(self, known: pa.Table) -> dict[str, str]:
        """Return those of some known records whose present licence and options are not this landing's.

        Args:
            known: record_id, license, options, as `TableIds.among` gives them.

        Returns:
            record_id to its present facts, as JSON.
        """
        amended = self._amendments()
        ours = (self.facts.license, self.facts.options)
        if not amended:
            same = pc.equal(known["options"], self.facts.options)
            column = known["license"]
            same_license = pc.is_null(column) if ours[0] is None else pc.fill_null(pc.equal(column, ours[0]), False)
            known = known.filter(pc.invert(pc.and_(same, same_license)))
        others = {}
        for row in known.to_pylist():
            present = amended.get(row["record_id"], (row["license"], row["options"]))
            if present != ours:
                others[row["record_id"]] = Facts("", "", *present).together
        return others

    def amend(self, record_ids: Iterable[str]) -> None:
        """Remember that records were amended to this landing's facts."""
        self._amendments().update(dict.fromkeys(record_ids, (self.facts.license, self.facts.options)))

    def _amendments(self) -> dict[str, tuple[str | None, str]]:
        if self._amended is None:
            columns = ["record_id", "license", "options", "amended_at"]
            rows = rows_of_source(self.tables["amendments"], columns, self.facts.kind, self.facts.source)
            ordered = rows.sort_by("amended_at").to_pylist() if rows.num_rows else []
            self._amended = {r["record_id"]: (r["license"], r["options"]) for r in ordered}
        return self._amended


def options_json(options: Mapping[str, Any] | None) -> str:
    """Write provenance options as JSON, keys sorted, those not given left out.

    Raises:
        SourceError: an option is not known.
    """
    given = {k: v for k, v in (options or {}).items() if v is not None and v != [] and v != ()}
    unknown = sorted(set(given) - set(OPTIONS))
    if unknown:
        raise SourceError(f"options {unknown} are not known; there are {', '.join(OPTIONS)}. Leave the others out.")
    given = {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}
    return json.dumps(given, sort_keys=True, ensure_ascii=False)


OPTIONS = (
    "generator_model", "generator_version", "prompt_id", "prompt_hash", "seed", "temperature", "top_p", "parent_ids",
    "verifier", "verifier_verdict", "suite", "split",
)  # fmt: skip
