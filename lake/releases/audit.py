"""The audit: a Soda contract per published table, where only a check that was evaluated and passed counts.

Soda exits 0 when no check was evaluated, so its verdict is not asked: every check that the contract declares must come
back by name with the outcome PASSED. Soda Core 4 is under the Elastic License 2.0 and comes with the extra `soda`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from lake.config import NO_TELEMETRY, LakePaths
from lake.errors import AuditError, ContractError, MissingExtraError
from lake.releases.publish import check_emptied
from lake.releases.workspace import Build, Table, check_allowed, check_build, open_workspace, published_tables
from lake.sql import identifier
from lake.storage.refs import Refs


@dataclass(frozen=True)
class Failure:
    """A declared check that did not pass.

    Attributes:
        table: layer and name.
        check: name of the check.
        outcome: FAILED, NOT_EVALUATED, ABSENT (Soda gave no result) or ERROR.
        rows: how many rows break it; None where that cannot be counted.
        sql: shows them, with `lake sql --workspace`.
        detail: what Soda or DuckDB said, where the check could not be evaluated.
    """

    table: str
    check: str
    outcome: str
    rows: int | None
    sql: str | None
    detail: str = ""

    def __str__(self) -> str:
        count = "" if self.rows is None else f", {self.rows} rows"
        shown = f'\n    lake sql --workspace "{_shell(self.sql)}"' if self.sql else ""
        return f"{self.table}: '{self.check}' {self.outcome}{count}{f' ({self.detail})' if self.detail else ''}{shown}"


@dataclass(frozen=True)
class Audited:
    """A passed audit: of which invocation of dbt, how many tables, how many checks."""

    invocation: str
    tables: int
    checks: int


def audit(
    paths: LakePaths, allow_empty: Sequence[str] = (), say: Callable[[str], object] = lambda line: None
) -> Audited:
    """Hold each table that would be published against its contract.

    Args:
        paths: of the lake, the workspace and the project.
        allow_empty: tables that may have lost all their rows.
        say: takes a line of progress per table.

    Returns:
        What was checked; everything passed.

    Raises:
        AuditError: says which checks did not pass, how many rows broke them, and the SQL that shows these.
        StaleBuildError: the last build was partial, failed or of another state of the project.
        MissingExtraError: Soda is not installed.
    """
    verify = _soda()
    with open_workspace(paths.workspace) as connection:
        build = check_build(connection, paths)
        tables = published_tables(connection, paths.project)
        check_allowed(tuple(allow_empty), tables)
        failures: list[Failure] = []
        checks = 0
        taken_over = _taken_over(connection)
        for table in tables:
            count, failed = _audit_table(connection, paths, table, verify, taken_over)
            checks += count
            failures += failed
            origin = _origin(table, build, taken_over)
            say(f"audit {table.layer}/{table.name}: {count - len(failed)} of {count} checks passed{origin}")
        rows = {t.name: _count(connection, f"from {identifier('main', t.name)}") or 0 for t in tables}
    if failures:
        listed = "\n  ".join(map(str, failures))
        raise AuditError(
            f"{len(failures)} of {checks} checks did not pass; expected all. Nothing was published.\n  {listed}\n"
            "Mend the model or the data; or change the contract, if it is wrong."
        )
    refs = Refs(paths.home)
    check_emptied(refs.load(build.parent) if build.parent else None, rows, allow_empty)
    return Audited(build.invocation_id, len(tables), checks)


def _taken_over(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return how many rows were audited by the same checks in the release that they come from, by table."""
    names = connection.execute("select name from _lake.extended where relation is not null and is_audited").fetchall()
    return {
        name: (_count(connection, f"from {identifier('main', name)}") or 0)
        - (_count(connection, f"from {identifier('_added', name)}") or 0)
        for (name,) in names
    }


def _origin(table: Table, build: Build, taken_over: Mapping[str, int]) -> str:
    if table.name not in taken_over:
        return ""
    return f" ({taken_over[table.name]:,} rows taken over as audited in release {build.parent})"


def _audit_table(
    connection: duckdb.DuckDBPyConnection,
    paths: LakePaths,
    table: Table,
    verify: Callable[..., dict[str, str]],
    taken_over: Collection[str],
) -> tuple[int, list[Failure]]:
    """Run one table's contract; return the number of declared checks and those that did not pass."""
    from lake.contract import declared, soda_contract
    from lake.contract.soda import SCHEMA_CHECK

    name = f"{table.layer}/{table.name}"
    checks = {c.name: c for c in declared(paths.project, name, taken_over=taken_over)}
    expected = [SCHEMA_CHECK, *checks]
    if len(set(expected)) != len(expected):
        raise ContractError(f"contracts/{name}.yaml declares two checks of one name; each needs its own. Rename one.")
    with _log() as errors:
        if table.name not in taken_over:
            outcomes = verify(soda_contract(paths.project, name), connection)
        else:  # each row by itself where no release has audited it
            outcomes = verify(soda_contract(paths.project, name, of_rows=False, taken_over=taken_over), connection)
            outcomes |= verify(soda_contract(paths.project, name, "_added", of_rows=True), connection)
    failures = []
    for check in expected:
        outcome = outcomes.get(check, "ABSENT")
        if outcome != "PASSED":
            sql = checks[check].rows if check in checks else f"describe {identifier('main', table.name)}"
            rows = _count(connection, sql) if check in checks else None
            detail = "" if outcome == "FAILED" else "; ".join(errors)[:500]
            failures.append(Failure(name, check, outcome, rows, sql, detail))
    return len(expected), failures


def _soda() -> Callable[[dict[str, Any], duckdb.DuckDBPyConnection], dict[str, str]]:
    """Import Soda, without its telemetry; return a function from (contract, connection) to outcome by check."""
    os.environ.update(NO_TELEMETRY)  # before the first import: Soda phones home even for --help
    try:
        import yaml
        from soda_core.common.yaml import ContractYamlSource
        from soda_core.contracts.contract_verification import ContractVerificationSession
        from soda_duckdb.common.data_sources.duckdb_data_source import DuckDBDataSourceImpl
    except ImportError as error:
        raise MissingExtraError(error.name or "soda-core", "soda") from error

    def verify(contract: dict[str, Any], connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
        source = ContractYamlSource.from_str(yaml.safe_dump(contract, sort_keys=False))
        lake = DuckDBDataSourceImpl.from_existing_cursor(connection, name="lake")
        session = ContractVerificationSession.execute([source], data_source_impls=[lake])
        results = [c for r in session.contract_verification_results for c in r.check_results]
        outcomes: dict[str, str] = {}
        # Soda may give several results under one name: the first that did not pass stays.
        for result in results:
            name, outcome = result.check.name, result.outcome.value
            outcomes[name] = outcome if outcomes.get(name, "PASSED") == "PASSED" else outcomes[name]
        return outcomes

    return verify


@contextmanager
def _log() -> Iterator[list[str]]:
    """Collect what Soda logs as an error instead of printing all that it logs."""
    errors: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.ERROR:
                errors.append(record.getMessage().strip().split("\n")[0])

    # Soda logs through its own logger and the root; both are put back as they were, whatever the caller had set.
    logger, root = logging.getLogger("soda"), logging.getLogger()
    collector, before, propagate, handlers = Collector(), logger.handlers[:], logger.propagate, root.handlers[:]
    logger.handlers, logger.propagate, root.handlers = [collector], False, [collector]
    try:
        yield errors
    finally:
        logger.handlers, logger.propagate, root.handlers = before, propagate, handlers


def _count(connection: duckdb.DuckDBPyConnection, sql: str) -> int | None:
    """Count a query's rows; None where it does not run, as on a column that is missing."""
    try:
        ((count,),) = connection.execute(f"select count(*) from ({sql})").fetchall()
    except duckdb.Error:
        return None
    return int(count)


def _shell(sql: str) -> str:
    """Escape a text for double quotes of a shell."""
    return "".join(f"\\{c}" if c in '"\\$`' else c for c in sql)
