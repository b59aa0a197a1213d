"""What a workspace holds for a release: its tables under contract, and whether they are a whole build of this project.

A workspace may hold a partial build, a failed one, or one of yesterday's models, each with every table in place. So the
rows that dbt notes in `_lake.built` decide, not the tables.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from lake.config import LakePaths
from lake.errors import ContractError, NotFoundError, StaleBuildError, UsageError
from lake.identity import H
from lake.odcs import primary_key
from lake.schema import arrow, contract, tables
from lake.storage.catalog import built_tables, read_base, read_pins

LAYERS = ("curated", "eval", "train")
LAST = (
    "select invocation_id, command, selection, pins_digest, project_digest, failures from _lake.built "
    "order by rowid desc limit 1"
)


@dataclass(frozen=True)
class Table:
    """A built table that a release publishes.

    Attributes:
        name: as SQL names it.
        layer: folder of its contract: curated, eval or train.
        key: columns of its primary key, in order; empty where the contract has none.
        schema: the contract's canonical Arrow schema; the last column is `row_hash`.
        contract_version: version of the contract.
    """

    name: str
    layer: str
    key: tuple[str, ...]
    schema: pa.Schema
    contract_version: str


@dataclass(frozen=True)
class Build:
    """The invocation of dbt that wrote a workspace last, whole and without failure.

    Attributes:
        invocation_id: dbt's.
        project_digest: of models, macros, tests, contracts, seeds and kernels.
        raw_pins: Delta version of each raw table; None where nothing had landed.
        parent: the release that the inputs were pinned beside, or None.
    """

    invocation_id: str
    project_digest: str
    raw_pins: dict[str, int | None]
    parent: int | None


@contextmanager
def open_workspace(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a workspace for reading.

    Raises:
        NotFoundError: nothing was built here.
        UsageError: another process is building in it.
    """
    if not path.is_file():
        raise NotFoundError(f"there is no workspace {path}; expected what a build makes. Run `lake build`.")
    try:
        connection = duckdb.connect(path, read_only=True)
    except duckdb.IOException as error:
        raise UsageError(f"{path} is in use by another process: {error}. Wait until its build is done.") from error
    try:
        # Times become text in row hashes and results; the machine's zone must not show in them.
        connection.execute("set TimeZone = 'UTC'")
        connection.execute("set enable_progress_bar = false")
        connection.execute("set arrow_large_buffer_size = true")  # a batch of texts may be above 2 GiB
        yield connection
    finally:
        connection.close()


def check_build(connection: duckdb.DuckDBPyConnection, paths: LakePaths) -> Build:
    """Return the last build, if it can be audited and published.

    Args:
        connection: the open workspace.
        paths: of the lake and the project.

    Raises:
        StaleBuildError: it was partial, failed, never finished, of another lake or under another project digest.
    """
    from lake.kernels import project

    again = "Run `lake build` (or `dbt build` without a selection)."
    try:
        last = connection.execute(LAST).fetchall()
        base, pins = read_base(connection), read_pins(connection)
    except duckdb.CatalogException as error:
        raise StaleBuildError(f"{paths.workspace} was not made by a build of this project. {again}") from error
    if not last or base is None:
        raise StaleBuildError(f"nothing was built in {paths.workspace} yet. {again}")
    ((invocation, command, selection, pinned, built_under, failures),) = last
    home, parent = base
    if os.path.normpath(home) != os.path.normpath(paths.home):
        raise StaleBuildError(f"{paths.workspace} was built from the lake {home}, not from {paths.home}. {again}")
    if selection:
        raise StaleBuildError(
            f"the last dbt invocation that wrote {paths.workspace} was partial ({selection}); its tables may come "
            f"from different inputs. {again}"
        )
    # The row is written when dbt starts and completed when it ends: null failures mean that it was killed.
    if failures is None:
        raise StaleBuildError(f"the last `dbt {command}` in {paths.workspace} did not come to its end. {again}")
    if failures:
        raise StaleBuildError(f"the last `dbt {command}` had {failures} failures; expected none. Mend them. {again}")
    if pinned != pins_digest(pins):
        raise StaleBuildError(
            f"raw tables were pinned anew in {paths.workspace} after its last build; that build was stopped. {again}"
        )
    present = project.digest(paths.project)
    if built_under != present:
        raise StaleBuildError(
            f"models, macros, tests, contracts, seeds or kernels changed since the last build (project digest "
            f"{built_under[:12]} then, {present[:12]} now). {again}"
        )
    return Build(invocation, built_under, pins, parent)


def pins_digest(pins: Mapping[str, int | None]) -> str:
    """Return the hash of the raw tables' pinned versions, as `_lake.built` notes it."""
    return H(*[f"{name} {'' if version is None else version}" for name, version in sorted(pins.items())])


def published_tables(connection: duckdb.DuckDBPyConnection, project: Path) -> list[Table]:
    """Return the tables of a workspace that a release holds: those whose contract says table, by name.

    Args:
        connection: the open workspace.
        project: folder of contracts/.

    Raises:
        StaleBuildError: a contract's model is not there.
    """
    built = built_tables(connection)
    published, missing = [], []
    for path in tables(project):
        layer, name = path.split("/")
        if layer not in LAYERS:
            continue
        if contract(project, path)["schema"][0]["physicalType"] != "table":
            continue
        if name in built:
            published.append(table_of(project, path))
        else:
            missing.append(name)
    if missing:
        raise StaleBuildError(f"{', '.join(missing)} have a contract and were not built. Run `lake build`.")
    return sorted(published, key=lambda t: t.name)


def table_of(project: Path, path: str) -> Table:
    """Return what a release needs to know of a table from its contract.

    Args:
        project: folder of contracts/.
        path: layer and name, such as `curated/examples`.

    Raises:
        ContractError: the last column is not `row_hash`.
    """
    loaded, schema = contract(project, path), arrow(project, path)
    if schema.names[-1] != "row_hash":
        raise ContractError(
            f"contract {path} ends in column {schema.names[-1]!r}; a published table's ends in "
            "row_hash, which releases are compared by. Add it in the contract and, by the macro row_hash, in the model."
        )
    layer, name = path.split("/")
    return Table(name, layer, tuple(primary_key(loaded["schema"][0])), schema, str(loaded["version"]))


def content(connection: duckdb.DuckDBPyConnection, relation: str) -> tuple[int, str]:
    """Return the number of rows and the digest of a relation with a column `row_hash`.

    The digest is the sums modulo 2^64 of both halves of the hashes, so it is the same for the same rows in any order
    and any files, and differences of digests are digests of differences. A sum and not an exclusive or: a row that is
    there twice must not cancel itself.

    Args:
        connection: that reads it.
        relation: as it stands after `from`.

    Returns:
        (rows, 32 hex digits).
    """
    ((rows, first, second),) = connection.execute(f"select {SUMS} from {relation}").fetchall()
    return rows, digest(first, second)


SUMS = (
    "count(*)::bigint, coalesce(sum(('0x' || left(row_hash, 16))::ubigint), 0), "
    "coalesce(sum(('0x' || right(row_hash, 16))::ubigint), 0)"
)


def digest(first: int, second: int) -> str:
    """Return the digest of row hashes by the sums of their halves.

    Args:
        first: sum of the first 16 hex digits of each hash, an integer of 0 or more; taken modulo 2^64.
        second: the same of the last 16.

    Returns:
        32 hex digits.
    """
    return f"{first % 2**64:016x}{second % 2**64:016x}"


def check_allowed(allow_empty: tuple[str, ...], tables: list[Table]) -> None:
    """Refuse a name in --allow-empty that is no published table: it would allow nothing.

    Args:
        allow_empty: names as they were given.
        tables: the published ones.

    Raises:
        UsageError: a name is none of these.
    """
    names = [t.name for t in tables]
    for name in allow_empty:
        if name not in names:
            raise UsageError(f"--allow-empty {name}: no published table of that name; there are {', '.join(names)}.")
