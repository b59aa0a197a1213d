"""A published table as training sees it: its release, digest, contract version, columns and id column."""

from __future__ import annotations

from dataclasses import dataclass

from lake.errors import UsageError
from lake.query.diff import key_of
from lake.query.query import Lake
from lake.storage.refs import Release


@dataclass(frozen=True)
class Table:
    """A table of a release.

    Attributes:
        name: plain name, such as `train_sft`.
        release: the release it is read from.
        digest: of its content, whatever its files.
        rows: number of rows.
        contract_version: that it was audited under.
        columns: in the contract's order.
        key: column of the row ids.
    """

    name: str
    release: Release
    digest: str
    rows: int
    contract_version: str
    columns: tuple[str, ...]
    key: str


def open_table(lake: Lake, name: str, ref: str | int | None = None) -> Table:
    """Find a published table.

    Args:
        lake: where.
        name: plain name.
        ref: number or tag of the release; default the last.

    Raises:
        NotFoundError: no such release or table.
        UsageError: its rows have no single id column.
    """
    release = lake.release(ref)
    version = release.table(name)
    columns = tuple(release.snapshot(name).schema.names)
    key = _key(lake, name, columns)
    return Table(name, release, version.digest, version.rows, version.contract_version, columns, key)


def _key(lake: Lake, name: str, columns: tuple[str, ...]) -> str:
    """Return the id column: the primary key in the project's contract, else `example_id`."""
    keys = key_of(lake, name)
    if len(keys) == 1 and keys[0] in columns:
        return keys[0]
    if "example_id" in columns:
        return "example_id"
    raise UsageError(
        f"{name} has no single column as primary key and no `example_id`, so its rows have no order. "
        "Export and train tables whose contract names one."
    )
