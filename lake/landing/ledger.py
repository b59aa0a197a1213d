"""What a source has landed before: its files, roots, options, and the ids of its records.

Ids are looked up by reading the id column of the raw table's files (32 bytes a record) and keeping what is asked for,
so memory follows the question and not the lake.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lake import schema
from lake.config import LakePaths
from lake.errors import SourceError
from lake.landing.records import Facts
from lake.sources import formats
from lake.storage import table
from lake.storage.parquet import filesystem_of


def rows_of(
    state: table.Snapshot | None,
    columns: list[str],
    equal: Mapping[str, str],
    ids: tuple[str, list[str]] | None = None,
    files: Iterable[str] | None = None,
) -> pa.Table:
    """Read rows of a table's files, batch by batch, keeping those that are asked for.

    pyarrow.dataset would do it too; its import costs half a second, for it takes pandas along.

    Args:
        state: the table's version, None for no table.
        columns: columns to return.
        equal: columns that must have a value.
        ids: a column, and the values that count in it.
        files: only these of the files.
    """
    wanted = pa.array(ids[1], pa.string()) if ids else None
    found: list[pa.RecordBatch] = []
    for path in (state.files if files is None else files) if state else ():
        filesystem, where = filesystem_of(path)
        with filesystem.open_input_file(where) as source:
            read = list(dict.fromkeys([*columns, *equal]))
            for batch in pq.ParquetFile(source).iter_batches(batch_size=65_536, columns=read):
                masks = [pc.equal(batch[name], value) for name, value in equal.items()]
                if ids:
                    masks.append(pc.is_in(batch[ids[0]], wanted))
                mask = functools.reduce(pc.and_, masks)
                if mask.true_count:
                    found.append(batch.select(columns).filter(mask))
    if not found:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    return pa.Table.from_batches(found)


@dataclass
class Known:
    """The ids of one table, on the version that the next commit is worked out on.

    Attributes:
        uri: the table.
        schema: its contract's.
        id_column: record_id or reject_id.
        facts: kind and source asked for.
        base: the version.
    """

    uri: str
    schema: pa.Schema
    id_column: str
    facts: Facts
    base: table.Snapshot | None = None

    def among(self, ids: list[str], files: Iterable[str] | None = None) -> pa.Table:
        """Return those of some ids that the table has, with their licence and options if it is the records' table.

        Args:
            ids: ids to look for.
            files: look in these files only.
        """
        is_records = self.id_column == "record_id"
        columns = [self.id_column, *(["license", "options"] if is_records else [])]
        if not ids:
            return rows_of(None, columns, {})
        return rows_of(self.base, columns, {"source": self.facts.source}, (self.id_column, ids), files)

    def move_on(self) -> list[str]:
        """Take the newest version as base; return the files that are new in it."""
        before = set(self.base.files) if self.base else set()
        self.base = table.create(self.uri, self.schema)
        return [f for f in self.base.files if f not in before]


@dataclass
class Ledger:
    """The landings of a source.

    Attributes:
        paths: the lake.
        facts: what the landing at hand says.
        roots: roots of the source's landings, the latest first.
        sizes: sizes of its done files: one of another size cannot be known.
    """

    paths: LakePaths
    facts: Facts
    roots: list[str] = field(default_factory=list)
    sizes: set[int] = field(default_factory=set)
    _done: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _amended: dict[str, tuple[str | None, str]] | None = None

    @property
    def _ours(self) -> dict[str, str]:
        return {"kind": self.facts.kind, "source": self.facts.source}

    def load(self) -> None:
        """Read raw.landings."""
        state = table.snapshot(self.paths.table("raw", "landings"))
        columns = schema.writer_schema(self.paths.project, "raw/landings")
        if state is not None:
            table.check_schema(state, columns)
        rows = rows_of(state, columns.names, self._ours)
        if rows.num_rows:
            rows = rows.sort_by([("landed_at", "descending")])
            rows = rows.filter(pc.equal(rows["state"], "done"))  # a folder of strangers settles no root
        self.roots = list(dict.fromkeys(rows["root"].to_pylist()))
        for row in rows.to_pylist():
            self._done.setdefault(row["sha256"], []).append(row)
            self.sizes.add(row["bytes"])

    def done(self, sha256: str, path: str, named: str | None, amend: bool) -> dict[str, Any] | None:
        """Find the landing that has done a file before.

        Args:
            sha256: of the file as it lies.
            path: below the root; a document file is done only under its own path.
            named: format asked for with `--format`.
            amend: other options are no reason to stop.

        Returns:
            The latest such landing, or None: the file must be read.

        Raises:
            SourceError: it was landed with other options.
        """
        for row in self._done.get(sha256, ()):
            form = formats().get(row["format"])
            if form is None or (named and named != row["format"]):
                continue
            if form.identity == "document" and row["path"] != path:
                continue
            if row["options"] == self.facts.together:
                return row
            if not amend:
                raise self.differ(path, row["options"])
            return None
        return None

    def differ(self, path: str, before: str) -> SourceError:
        """Say that records are there with other facts."""
        return SourceError(
            f"records of {path} are already in source {self.facts.source!r} with {before}; this landing says "
            f"{self.facts.together}. Pass the same options, or --amend to let the new ones count from now on."
        )

    def others(self, known: pa.Table) -> dict[str, str]:
        """Return those of some known records whose present licence and options are not this landing's.

        Args:
            known: record_id, license, options, as `Known.among` gives them.

        Returns:
            record_id to its present facts, as JSON.
        """
        amended = self._amendments()
        ours = (self.facts.license, self.facts.options)
        if not amended:
            same = pc.equal(known["options"], self.facts.options)
            license_ = known["license"]
            same_license = pc.is_null(license_) if ours[0] is None else pc.fill_null(pc.equal(license_, ours[0]), False)
            known = known.filter(pc.invert(pc.and_(same, same_license)))
        found = {}
        for row in known.to_pylist():
            present = amended.get(row["record_id"], (row["license"], row["options"]))
            if present != ours:
                found[row["record_id"]] = Facts("", "", *present).together
        return found

    def amend(self, facts_of: Mapping[str, Facts]) -> None:
        """Remember amendments that were committed."""
        for record_id, facts in facts_of.items():
            self._amendments()[record_id] = (facts.license, facts.options)

    def _amendments(self) -> dict[str, tuple[str | None, str]]:
        if self._amended is None:
            state = table.snapshot(self.paths.table("raw", "amendments"))
            rows = rows_of(state, ["record_id", "license", "options", "amended_at"], self._ours)
            ordered = rows.sort_by("amended_at").to_pylist() if rows.num_rows else []
            self._amended = {r["record_id"]: (r["license"], r["options"]) for r in ordered}
        return self._amended


def options_json(options: Mapping[str, Any] | None) -> str:
    """Write provenance options as JSON, keys sorted, those not given left out."""
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
