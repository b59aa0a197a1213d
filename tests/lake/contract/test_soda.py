"""A Soda contract finds every planted violation of its ODCS file, in real Soda runs on real DuckDB tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from lake.contract import declared, soda_contract
from lake.contract.soda import SCHEMA_CHECK

ANIMALS = """
apiVersion: v3.1.0
kind: DataContract
id: zoo.animals
name: zoo.animals
version: 1.2.3
status: active
description: {purpose: Animals.}
schema:
  - name: animals
    physicalType: table
    description: Animals of a zoo. One row per animal.
    quality:
      - {name: the zoo is not empty, metric: rowCount, mustBeGreaterThan: 0}
      - {metric: duplicateValues, arguments: {properties: [house, name]}, mustBe: 0}
      - name: no animal is its own keeper
        type: sql
        query: select count(*) from ${object} where id = name
        mustBe: 0
    properties:
      - {name: id, logicalType: string, required: true, primaryKey: true}
      - {name: name, logicalType: string, logicalTypeOptions: {pattern: '^[A-Z]', maxLength: 8}}
      - name: kind
        logicalType: string
        quality: [{metric: invalidValues, arguments: {validValues: [cat, "dog's"]}, mustBe: 0}]
      - {name: house, logicalType: string, relationships: [{to: houses.house_id}]}
      - {name: age, logicalType: integer, logicalTypeOptions: {minimum: 0}}
      - name: visits
        logicalType: array
        items:
          logicalType: object
          properties:
            - {name: day, logicalType: date, required: true}
            - name: guests
              logicalType: array
              items: {logicalType: string, required: true}
"""
VISITS = "[{day: date '2026-01-01', guests: ['a', 'b']}, {day: date '2026-01-02', guests: null}]"
GOOD = f"('1', 'Tom', 'cat', 'h', 3, {VISITS})"
COLUMNS = (
    "id varchar, name varchar, kind varchar, house varchar, age {age}, visits struct({day} date, guests varchar[])[]"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "contracts" / "zoo").mkdir(parents=True)
    (tmp_path / "contracts" / "zoo" / "animals.yaml").write_text(ANIMALS)
    return tmp_path


def zoo(rows: str = GOOD, age: str = "bigint", day: str = "day") -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("create table houses(house_id varchar); insert into houses values ('h')")
    connection.execute(f"create table animals({COLUMNS.format(age=age, day=day)})")
    connection.execute(f"insert into animals values {rows}" if rows else "select 1")
    return connection


def outcomes(contract: dict[str, Any], connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Run Soda itself; check name to outcome."""
    os.environ.update(SODA_CORE_TELEMETRY_ENABLED="false", DO_NOT_TRACK="1")
    sessions = pytest.importorskip("soda_core.contracts.contract_verification", exc_type=ImportError)
    from soda_core.common.yaml import ContractYamlSource
    from soda_duckdb.common.data_sources.duckdb_data_source import DuckDBDataSourceImpl

    source = ContractYamlSource.from_str(yaml.safe_dump(contract, sort_keys=False))
    lake = DuckDBDataSourceImpl.from_existing_cursor(connection, name="lake")
    result = sessions.ContractVerificationSession.execute([source], data_source_impls=[lake])
    found = [(c.check.name, c.outcome.value) for r in result.contract_verification_results for c in r.check_results]
    assert len(dict(found)) == len(found), "two checks of one name"
    return dict(found)


def test_soda_evaluates_and_passes_every_declared_check_of_a_good_table(project: Path) -> None:
    names = {SCHEMA_CHECK, *(c.name for c in declared(project, "zoo/animals"))}
    assert outcomes(soda_contract(project, "zoo/animals"), zoo()) == dict.fromkeys(names, "PASSED")
    assert len(names) == 14


@pytest.mark.parametrize(
    ("rows", "broken"),
    [
        ("(null, 'A', 'cat', 'h', 1, null)", "id is there"),
        (f"{GOOD}, ('1', 'A', 'cat', 'h', 1, null)", "id is unique"),
        ("('1', 'tom', 'cat', 'h', 1, null)", "name keeps pattern"),
        ("('1', 'Tomtomtom', 'cat', 'h', 1, null)", "name keeps maxLength"),
        ("('1', 'A', 'bot', 'h', 1, null)", "kind is a known value"),
        ("('1', 'A', 'cat', 'g', 1, null)", "house is in houses.house_id"),
        ("('1', 'A', 'cat', 'h', -1, null)", "age keeps minimum"),
        ("('1', 'A', 'cat', 'h', 1, [{day: null, guests: null}])", "visits[].day is there"),
        ("('1', 'A', 'cat', 'h', 1, [{day: date '2026-01-01', guests: ['a', null]}])", "visits[].guests[] is there"),
        ("", "the zoo is not empty"),
        (f"{GOOD}, ('2', 'Tom', 'cat', 'h', 1, null)", "house and name are unique together"),
        ("('A', 'A', 'cat', 'h', 1, null)", "no animal is its own keeper"),
    ],
)
def test_soda_finds_the_one_planted_violation_and_its_query_shows_the_rows(
    project: Path, rows: str, broken: str
) -> None:
    connection = zoo(rows)
    found = outcomes(soda_contract(project, "zoo/animals"), connection)
    assert {n: o for n, o in found.items() if o != "PASSED"} == {broken: "FAILED"}
    shown = next(c for c in declared(project, "zoo/animals") if c.name == broken)
    assert connection.execute(shown.rows).fetchall() != []


def test_a_primary_key_of_several_columns_is_unique_as_a_whole(project: Path) -> None:
    key = "id, logicalType: string, required: true, primaryKey: true"
    contract = ANIMALS.replace(key, f"{key}, primaryKeyPosition: 2").replace(
        "house, logicalType: string,", "house, logicalType: string, primaryKey: true, primaryKeyPosition: 1,"
    )
    (project / "contracts" / "zoo" / "animals.yaml").write_text(contract)
    names = {c.name for c in declared(project, "zoo/animals") if "unique" in c.name}
    assert names == {"house and id are unique together", "house and name are unique together"}
    contract = soda_contract(project, "zoo/animals")
    connection = zoo(f"{GOOD}, ('1', 'Ann', 'cat', 'g', 1, null), ('2', 'Bob', 'cat', 'g', 1, null)")
    connection.execute("insert into houses values ('g'), (null)")
    assert {*outcomes(contract, connection).values()} == {"PASSED"}
    connection.execute("insert into animals values ('1', 'Eve', 'cat', 'g', 1, null)")
    found = outcomes(contract, connection)
    assert {n: o for n, o in found.items() if o != "PASSED"} == {"house and id are unique together": "FAILED"}


def test_a_null_among_the_keys_hides_no_lost_reference(project: Path) -> None:
    connection = zoo("('1', 'A', 'cat', 'g', 1, null)")
    connection.execute("insert into houses values (null)")
    found = outcomes(soda_contract(project, "zoo/animals"), connection)
    assert {n: o for n, o in found.items() if o != "PASSED"} == {"house is in houses.house_id": "FAILED"}


@pytest.mark.parametrize("change", [{"age": "integer"}, {"day": "date_"}])
def test_a_type_that_soda_cannot_tell_apart_still_fails(project: Path, change: dict[str, str]) -> None:
    contract = soda_contract(project, "zoo/animals")
    contract["columns"] = [{k: v for k, v in c.items() if k != "checks"} for c in contract["columns"]]
    contract["checks"] = contract["checks"][:2]  # the others would not even run against another type
    rows = "('1', 'Tom', 'cat', 'h', 3, null)"
    found = outcomes(contract, zoo(rows, **change))
    assert found == {SCHEMA_CHECK: "PASSED", "every column has its exact type": "FAILED"}


def test_a_missing_table_never_passes(project: Path) -> None:
    found = outcomes(soda_contract(project, "zoo/animals"), duckdb.connect())
    assert "PASSED" not in {o for n, o in found.items() if n != "every column has its exact type"}
    assert found["every column has its exact type"] != "PASSED"
