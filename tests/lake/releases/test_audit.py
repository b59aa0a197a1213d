"""The audit passes only when every declared check was evaluated and passed, and says what broke which."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import lake.releases.audit
from lake.contract import declared
from lake.errors import AuditError, MissingExtraError, StaleBuildError
from lake.query.query import Lake
from lake.releases.audit import audit
from lake.releases.publish import publish
from lake.storage.refs import Refs
from tests.small_lake import SmallLake, rows

pytest.importorskip("soda_duckdb", reason="the extra soda is not installed")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    made = SmallLake.make(tmp_path)
    monkeypatch.setenv("LAKE_WORKSPACE", str(made.paths.workspace))
    return made


def test_a_good_build_passes_every_declared_check(small: SmallLake) -> None:
    small.build(rows(1, 2), rows(3))
    passed = audit(small.paths)
    checks = [len(declared(small.paths.project, f"curated/{t}")) + 1 for t in ("examples", "hits")]
    assert (passed.tables, passed.checks) == (2, sum(checks)) and min(checks) >= 7


def test_a_failed_check_is_named_with_its_rows_and_the_sql_that_shows_them(small: SmallLake) -> None:
    small.build(rows(1, 2, 2))
    with pytest.raises(AuditError, match="'example_id is unique' FAILED, 2 rows") as caught:
        audit(small.paths)
    line = next(x for x in str(caught.value).splitlines() if "lake sql --workspace" in x and "qualify" in x)
    sql = line.split('--workspace "', 1)[1].rsplit('"', 1)[0].replace("\\", "")
    assert sorted(Lake(small.paths.home).sql(sql, workspace=True)["example_id"]) == ["e000002", "e000002"]


def test_a_table_without_a_column_of_its_contract_fails(small: SmallLake) -> None:
    small.build(rows(1))
    with duckdb.connect(small.paths.workspace) as connection:
        connection.execute("alter table examples drop column text")
    with pytest.raises(AuditError, match="columns are those of the contract"):
        audit(small.paths)


def test_a_check_that_soda_did_not_evaluate_fails(small: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    small.build(rows(1))
    verify = lake.releases.audit._soda()

    def forgets(contract: dict[str, object], connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
        return {k: v for k, v in verify(contract, connection).items() if k != "text is there"}

    monkeypatch.setattr(lake.releases.audit, "_soda", lambda: forgets)
    with pytest.raises(AuditError, match="'text is there' ABSENT"):
        audit(small.paths)


def test_a_table_that_lost_all_its_rows_fails_without_allow_empty(small: SmallLake) -> None:
    small.build(rows(1), rows(2))
    publish(small.paths)
    small.build(rows(1))
    with pytest.raises(AuditError, match="hits"):
        audit(small.paths)
    audit(small.paths, allow_empty=["hits"])


def test_a_partial_build_is_not_audited(small: SmallLake) -> None:
    small.build(rows(1), selection="dbt build -s examples")
    with pytest.raises(StaleBuildError):
        audit(small.paths)
    assert Refs(small.paths.home).numbers() == []


def test_without_soda_the_extra_is_named(small: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    small.build(rows(1))
    monkeypatch.setitem(sys.modules, "soda_core.common.yaml", None)
    with pytest.raises(MissingExtraError, match=r"lakewright\[soda\]"):
        audit(small.paths)


def test_no_telemetry_is_on_before_soda_is_imported() -> None:
    script = (
        "import lake.releases.audit, os; lake.releases.audit._soda(); print(os.environ['SODA_CORE_TELEMETRY_ENABLED'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "false\n"
