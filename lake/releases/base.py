"""What a build starts from: the last release's tables, and the records that came, went or were amended since.

An extended model (transforms/macros/extended.sql) takes over each row of the last release that is made of the same
records by the same code. The statements made here lay out in the workspace what it needs to know:

    _base.<table>                the release's rows; none where the table has another schema now
    _added.<model>, _removed.<model>  rows that the release lacks, keys of its rows that count no more
    _changed.<kind>, _touched.<kind>  raw records that are changed, and those that share an example with a changed one
    _changed.<kernel>, _touched.<kernel>  results of the kernels that records go through, for these records
    _lake.extended  name, key, relation, is_audited, code   per extended model: SQL of the release's rows, null where
                                none may be taken over; whether they were audited by the checks of now; code, as JSON
    _lake.changed   kind, record_id, is_new     records that are new, gone or amended since the release
    _lake.remade    kind    of records that go through other code now: all of them count as new
    _lake.lost      kernel  whose results are not those that the release was built from

Files of raw tables are only ever added, or joined, so what changed is found from the files of two versions. Joined
files hold the records of those that they replaced, which are left out by id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from lake.identity import H
from lake.kernels import memo
from lake.kernels.fingerprint import described
from lake.kinds import KINDS
from lake.releases.lineage import RECORDS, WHOLE, Extended
from lake.releases.workspace import LAYERS
from lake.schema import arrow, contract, tables
from lake.sql import identifier, literal
from lake.storage.refs import Lineage, Release
from lake.storage.table import Snapshot, snapshot
from lake.storage.views import relation
from transforms.kernel import Kernel

Pins = Mapping[str, int | None]

SCOPES = ("_changed", "_touched")
RECORD_KERNELS = ("chat", "document_text")
"""Kernels that stand between records and `examples`."""

TABLES = """
create schema if not exists _base;
create schema if not exists _added;
create schema if not exists _removed;
create schema if not exists _affected;
create schema if not exists _changed;
create schema if not exists _touched;
create table if not exists _lake.touched (kind varchar, record_id varchar, is_new boolean);
create or replace table _lake.extended (
    name varchar, key varchar, relation varchar, is_audited boolean, code varchar
);
create or replace table _lake.lost (kernel varchar);
create or replace table _lake.remade (kind varchar)
"""


@dataclass(frozen=True)
class Project:
    """What a build needs to know of the project and its memos.

    Attributes:
        home: the lake.
        raw: canonical schema of each raw table, by name.
        contracts: canonical schema of each table that a release may hold, by name.
        audits: hash of what each of these is audited by.
        models: the extended models, each after those that it follows.
        memos: Delta's id of each kernel's memo, by kernel; None where nothing was computed.
    """

    home: str
    raw: Mapping[str, pa.Schema]
    contracts: Mapping[str, pa.Schema]
    audits: Mapping[str, str]
    models: Sequence[Extended]
    memos: Mapping[str, str | None]


def project_of(
    folder: Path, home: str, raw: Mapping[str, pa.Schema], models: Sequence[Extended], kernels: Mapping[str, Kernel]
) -> Project:
    """Read what a build needs to know of a project and its memos.

    Args:
        folder: of dbt_project.yml.
        home: the lake.
        raw: canonical schema of each raw table, by name.
        models: the extended models, in order.
        kernels: by name.
    """
    return Project(
        home=home,
        raw=raw,
        contracts={path.split("/")[1]: arrow(folder, path) for path in _published(folder)},
        audits=audits(folder),
        models=models,
        memos={name: memo.table_id(home, kernel) for name, kernel in kernels.items()},
    )


def audits(folder: Path) -> dict[str, str]:
    """Return, by table, the hash of what its rows are judged by: its contract, and the code that evaluates it.

    Args:
        folder: of dbt_project.yml.
    """
    tests = folder / "transforms" / "macros" / "scoped_tests.sql"
    code = described(["lake.contract.checks", "lake.contract.soda"], ["duckdb", "dbt-core", "soda-core"])
    judges = [*code, tests.read_text("utf-8") if tests.is_file() else ""]
    return {
        path.split("/")[1]: H("audit", json.dumps(contract(folder, path), sort_keys=True, default=str), *judges)
        for path in _published(folder)
    }


def _published(folder: Path) -> list[str]:
    return [path for layer in LAYERS for path in tables(folder, layer)]


@dataclass(frozen=True)
class Base:
    """A release as a build of some project sees it.

    Attributes:
        project: what builds.
        release: the last one; None before the first, or to build everything whole.
        lineages: codes that are known to make this release's rows, any of them.
    """

    project: Project
    release: Release | None = None
    lineages: Sequence[Lineage] = field(default=())

    def statements(self, pins: Pins) -> str:
        """Return the SQL that lays it out in a workspace.

        Args:
            pins: versions of the raw tables that are built from.
        """
        lost = self._lost()
        parts = [TABLES.strip(), *(f"insert into _lake.lost values ({literal(kernel)})" for kernel in lost)]
        rows = {name: self._rows(name) for name in self.project.contracts}
        for name, selected in rows.items():
            empty = relation(self.project.contracts[name], None)
            parts.append(f"create or replace view {identifier('_base', name)} as {selected or empty}")
        remade = {*KINDS}
        for model in self.project.models:
            if not self._is_taken_over(model, rows, lost):
                rows[model.name] = None
            elif model.follows == (RECORDS,):
                remade = self._remade(model)
            sql = rows.get(model.name)
            audit = self.project.audits.get(model.name)
            is_audited = audit is not None and any(n.audits.get(model.name) == audit for n in self.lineages)
            values = [model.name, model.key, sql, json.dumps(dict(model.code))]
            name, key, selected, code = ("null" if v is None else literal(v) for v in values)
            parts.append(f"insert into _lake.extended values ({name}, {key}, {selected}, {is_audited}, {code})")
            parts += self._parts(model)
        parts += [f"insert into _lake.remade values ({literal(kind)})" for kind in sorted(remade)]
        parts += self._changed(pins, remade)
        for kernel in {*RECORD_KERNELS} & self.project.memos.keys():
            held = identifier("_lake", f"memo_{kernel}")
            parts.append(f"create or replace table {held} as select * from {identifier('memo', kernel)} limit 0")
            parts += [f"create or replace view {identifier(s, kernel)} as select * from {held}" for s in SCOPES]
        return ";\n".join(parts)

    def _lost(self) -> list[str]:
        """Return the kernels of whose results some that the release was built from may be missing."""
        return [
            kernel
            for kernel, present in self.project.memos.items()
            if not any(note.memos.get(kernel, "") == (present or "") for note in self.lineages)
        ]

    def _rows(self, table: str) -> str | None:
        """Return the SQL of a table's rows in the release; None where it has none in the schema of now."""
        if self.release is None or table not in self.release.tables:
            return None
        state = self.release.snapshot(table)
        expected = self.project.contracts[table]
        return relation(expected, state) if state.schema.equals(expected, check_metadata=False) else None

    def _is_taken_over(self, model: Extended, rows: Mapping[str, str | None], lost: Sequence[str]) -> bool:
        if rows.get(model.name) is None or not self._with_code(model, WHOLE):
            return False
        if model.follows == (RECORDS,):  # results for what shares an example with a change would be asked for
            return not {*RECORD_KERNELS} & {*lost}
        return all(rows.get(name) is not None for name in model.follows)

    def _with_code(self, model: Extended, *kinds: str) -> list[Lineage]:
        """Return the lineages that have a model's code of now, as a whole and for some kinds."""
        return [
            note
            for note in self.lineages
            if all(note.tables.get(model.name, {}).get(k) == model.code.get(k) for k in (WHOLE, *kinds))
        ]

    def _remade(self, model: Extended) -> set[str]:
        return {kind for kind in KINDS if not self._with_code(model, kind)}

    def _parts(self, model: Extended) -> Iterator[str]:
        """Yield the statements of a model that nobody has built here: nothing is new, nothing gone."""
        if model.name not in self.project.contracts:
            return
        base, key = identifier("_base", model.name), identifier(model.key)
        for schema, columns in (("_added", "*"), ("_removed", key)):
            held = identifier(schema, model.name)
            yield f"create table if not exists {held} as select {columns} from {base} limit 0"

    def _changed(self, pins: Pins, remade: set[str]) -> Iterator[str]:
        changes: list[str] = []
        views: list[str] = []
        for kind in KINDS:
            table = identifier("raw", kind)
            if kind in remade or self.release is None:
                changes.append(f"select {literal(kind)} as kind, record_id, true as is_new from {table}")
                views += [f"create or replace view {identifier(s, kind)} as select * from {table}" for s in SCOPES]
                continue
            then, now = self._pinned(kind, self.release.raw_pins), self._pinned(kind, pins)
            arrived, departed = _less(now, then), _less(then, now)
            columns = self.project.raw[kind]
            fresh = relation(columns, arrived)
            came, went = f"select record_id from ({fresh})", f"select record_id from ({relation(columns, departed)})"
            new = f"{came} except {went}" if departed else came
            old = [f"({went} except {came})"] if departed else []
            amended = self._amended(kind, pins)
            old += [f"({amended} except ({new}))"] if amended else []
            changes.append(f"select {literal(kind)} as kind, record_id, true as is_new from ({new})")
            changes += [f"select {literal(kind)} as kind, record_id, false as is_new from {one}" for one in old]
            if departed:
                fresh += f" where record_id in ({new})" if arrived else ""
            for scope in SCOPES:
                # What is new lies in new files; only what shares an example with it is looked for in all of them.
                others = f"select record_id from _lake.{scope[1:]} where kind = {literal(kind)} and not is_new"
                views.append(
                    f"create or replace view {identifier(scope, kind)} as {fresh} "
                    f"union all by name select * from {table} where record_id in ({others})"
                )
        yield f"create or replace view _lake.changed as {' union all '.join(changes)}"
        yield from views

    def _amended(self, kind: str, pins: Pins) -> str | None:
        assert self.release is not None
        arrived = _less(self._pinned("amendments", pins), self._pinned("amendments", self.release.raw_pins))
        if arrived is None:
            return None
        rows = relation(self.project.raw["amendments"], arrived)
        return f"select distinct record_id from ({rows}) where kind = {literal(kind)}"

    def _pinned(self, name: str, pins: Pins) -> Snapshot | None:
        version = pins.get(name)
        return None if version is None else snapshot(f"{self.project.home}/raw/{name}", version)


def _less(one: Snapshot | None, other: Snapshot | None) -> Snapshot | None:
    """Return a version with the files alone that another does not have; None where there are none."""
    there = set(other.files) if other else set()
    files = tuple(f for f in one.files if f not in there) if one else ()
    return replace(one, files=files) if one and files else None
