"""What one release has that another has not: rows added, removed and changed, per table and slice column.

Equal digests are equal tables and are not read. Of the others only keys, hashes and slice columns are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lake.query.query import Lake, View, connect
from lake.releases.workspace import LAYERS, table_of
from lake.schema import tables
from lake.sql import identifier
from lake.storage.refs import Release

SLICES = ("source", "kind", "shape", "suite", "split", "stage", "reason", "kept")


@dataclass(frozen=True)
class Change:
    """How many rows of a slice differ.

    Attributes:
        table: name.
        column: slice column, or None for the whole table.
        value: the slice's value as text; None is null, or the whole table.
        added: rows whose key only the second release has.
        removed: rows whose key only the first has.
        changed: rows of one key with other content, counted in the slice that the second release has them in.
    """

    table: str
    column: str | None
    value: str | None
    added: int
    removed: int
    changed: int


def diff(lake: Lake, first: str | int, second: str | int) -> list[Change]:
    """Compare two releases.

    Args:
        lake: where.
        first: number or tag, usually the older.
        second: number or tag.

    Returns:
        Per table that differs, its total and then its slices that differ.

    Raises:
        NotFoundError: there is no such release.
    """
    older, newer = lake.release(first), lake.release(second)
    changes: list[Change] = []
    for name in sorted({*older.tables, *newer.tables}):
        before, after = older.tables.get(name), newer.tables.get(name)
        if before and after and (before.rows, before.digest) == (after.rows, after.digest):
            continue
        changes += _compare(lake, name, _view(older, name, "before"), _view(newer, name, "after"))
    return changes


def as_json(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Return changes as plain objects."""
    return [asdict(c) for c in changes]


def as_text(changes: Sequence[Change]) -> str:
    """Return changes as lines."""
    if not changes:
        return "no table differs"
    lines = []
    for c in changes:
        where = c.table if c.column is None else f"  {c.column}={'null' if c.value is None else c.value}"
        lines.append(f"{where}: {c.added} added, {c.removed} removed, {c.changed} changed")
    return "\n".join(lines)


def _view(release: Release, table: str, name: str) -> View | None:
    if table not in release.tables:
        return None
    state = release.snapshot(table)
    return View(name, state.files, state.schema)


def _compare(lake: Lake, table: str, before: View | None, after: View | None) -> list[Change]:
    """Compare one table; one that only one release has is all added or all removed."""
    either = after or before
    assert either is not None and either.columns is not None
    older, newer = before or View("before", (), either.columns), after or View("after", (), either.columns)
    both = (older, newer)
    shared = [n for n in either.columns.names if all(v.columns is not None and n in v.columns.names for v in both)]
    keys = [identifier(k) for k in key_of(lake, table) if k in shared] or ["row_hash"]
    slices = [c for c in SLICES if c in shared]
    # Where the second release has the row, its slice is that release's, null too.
    kept = "".join(
        f", case when a.row_hash is null then cast(b.{c} as varchar) else cast(a.{c} as varchar) end as {c}"
        for c in map(identifier, slices)
    )
    rows = (
        f"with rows as (select a.row_hash as new, b.row_hash as old{kept} from after as a full join before as b "
        f"on {' and '.join(f'a.{k} is not distinct from b.{k}' for k in keys)} "
        "where a.row_hash is distinct from b.row_hash)"
    )
    counts = (
        "count(*) filter (old is null), count(*) filter (new is null), "
        "count(*) filter (old is not null and new is not null)"
    )
    selects = [f"select -1 as place, null as value, {counts} from rows"]
    for place, column in enumerate(map(identifier, slices)):
        selects.append(f"select {place} as place, {column} as value, {counts} from rows group by {column}")
    connection = connect(both)
    try:
        query = f"{rows} {' union all '.join(selects)} order by place, value nulls first"
        counted = connection.execute(query).fetchall()
    finally:
        connection.close()
    return [Change(table, slices[place] if place >= 0 else None, value, *n) for place, value, *n in counted]


def key_of(lake: Lake, table: str) -> tuple[str, ...]:
    """Return the columns of a table's primary key, by its contract.

    Args:
        lake: its project has the contract.
        table: published name, such as `examples`.

    Returns:
        Names in the key's order; none where the table has no contract, or the contract no key.

    Raises:
        ContractError: the contract is wrong.
    """
    for path in tables(lake.paths.project):
        layer, name = path.split("/")
        if name == table and layer in LAYERS:
            return table_of(lake.paths.project, path).key
    return ()
