"""`lake contract sync` writes dbt's files, and dbt itself holds a model to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from lake.cli import main
from lake.contract import sync
from lake.errors import ContractError
from lake.schema import PACKAGE
from tests import dbt_process

MODEL = """
select '1' as id, 'cat' as kind, 'h' as house,
       [{'day': date '2026-01-01', 'guests': ['a']}]::struct("day" date, guests varchar[])[] as visits
"""
ANIMALS = """
apiVersion: v3.1.0
kind: DataContract
id: zoo.animals
name: zoo.animals
version: 1.2.3
status: active
schema:
  - name: animals
    physicalType: table
    description: Animals of a zoo. One row per animal.
    quality: [{metric: duplicateValues, arguments: {properties: [kind, house]}, mustBe: 0}]
    properties:
      - {name: id, logicalType: string, required: true, primaryKey: true, description: Number on its door}
      - name: kind
        logicalType: string
        quality: [{metric: invalidValues, arguments: {validValues: [cat, dog]}, mustBe: 0}]
      - {name: house, logicalType: string, relationships: [{to: houses.house_id}]}
      - name: visits
        logicalType: array
        items:
          logicalType: object
          properties:
            - {name: day, logicalType: date}
            - {name: guests, logicalType: array, items: {logicalType: string}}
"""
MADE = """\
# Made by `lake contract sync` from contracts/zoo/animals.yaml; change that and run it again.
version: 2
models:
- name: animals
  description: Animals of a zoo. One row per animal.
  config:
    contract:
      enforced: true
    on_schema_change: fail
    meta:
      contract_version: 1.2.3
  data_tests:
  - unique:
      arguments:
        column_name: row("kind", "house")
  columns:
  - name: id
    data_type: VARCHAR
    description: Number on its door
    constraints:
    - type: not_null
      warn_unsupported: false
    data_tests:
    - unique
  - name: kind
    data_type: VARCHAR
    data_tests:
    - accepted_values:
        arguments:
          values:
          - cat
          - dog
          quote: true
  - name: house
    data_type: VARCHAR
    data_tests:
    - relationships:
        arguments:
          to: ref('houses')
          field: house_id
  - name: visits
    data_type: STRUCT("day" DATE, guests VARCHAR[])[]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dbt project of two models, one of them under contract."""
    for folder in ("contracts/zoo", "models/zoo", "models/staging/zoo"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "contracts/zoo/animals.yaml").write_text(ANIMALS)
    (tmp_path / "models/zoo/animals.sql").write_text(MODEL)
    (tmp_path / "models/staging/zoo/houses.sql").write_text("select 'h' as house_id")
    (tmp_path / "dbt_project.yml").write_text(
        "name: zoo\nprofile: zoo\nmodels: {zoo: {zoo: {+materialized: table}}}\n"
        "flags: {send_anonymous_usage_stats: false}\n"
    )
    profile = {"zoo": {"target": "t", "outputs": {"t": {"type": "duckdb", "path": str(tmp_path / "zoo.duckdb")}}}}
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump(profile))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def dbt(project: Path) -> tuple[int, dict[str, str]]:
    """Build with dbt itself; exit code, and status by node name."""
    own = {"DBT_TARGET_PATH": str(project / "target"), "DBT_LOG_PATH": str(project / "logs")}
    code, output = dbt_process.run(["build", "--no-use-colors", "-q"], project, own)
    results = json.loads((project / "target" / "run_results.json").read_text())["results"]
    assert "Deprecat" not in output
    return code, {r["unique_id"].split(".")[2]: r["status"] for r in results}


def test_sync_writes_what_the_contract_says_once_and_check_is_silent_then(project: Path) -> None:
    assert sync(project, check=True) == [Path("models/zoo/animals.yml")]
    assert not (project / "models/zoo/animals.yml").exists()
    assert sync(project) == [Path("models/zoo/animals.yml")]
    assert (project / "models/zoo/animals.yml").read_text() == MADE
    assert sync(project) == sync(project, check=True) == []


def test_check_fails_and_names_the_file_that_was_edited(project: Path) -> None:
    sync(project)
    (project / "models/zoo/animals.yml").write_text(MADE.replace("DATE", "VARCHAR"))
    result = CliRunner().invoke(main, ["contract", "sync", "--check"])
    assert result.exit_code == 1
    assert "differs: models/zoo/animals.yml" in result.output
    assert CliRunner().invoke(main, ["contract", "sync"]).exit_code == 0
    assert (project / "models/zoo/animals.yml").read_text() == MADE


def test_a_removed_contract_takes_its_file_with_it_and_the_lonely_model_fails_the_check(project: Path) -> None:
    sync(project)
    (project / "contracts/zoo/animals.yaml").unlink()
    assert sync(project) == [Path("models/zoo/animals.yml")]
    assert not (project / "models/zoo/animals.yml").exists()
    result = CliRunner().invoke(main, ["contract", "sync", "--check"])
    assert result.exit_code == 1
    assert "models/zoo/animals has no contract" in result.output


def test_a_wrong_contract_or_a_file_by_hand_leaves_every_byte_as_it_was(project: Path) -> None:
    sync(project)
    (project / "contracts/zoo/animals.yaml").write_text(ANIMALS.replace("houses.house_id", "houses.house_no"))
    (project / "contracts/zoo/birds.yaml").write_text(ANIMALS)
    with pytest.raises(ContractError, match=r"birds\.yaml: id is 'zoo\.animals', expected zoo\.birds"):
        sync(project)
    assert (project / "models/zoo/animals.yml").read_text() == MADE
    (project / "contracts/zoo/birds.yaml").unlink()
    (project / "models/zoo/animals.yml").write_text("version: 2\n")
    with pytest.raises(ContractError, match="written by hand"):
        sync(project)
    assert (project / "models/zoo/animals.yml").read_text() == "version: 2\n"


@pytest.mark.integration
def test_dbt_builds_a_model_that_keeps_its_contract_and_runs_its_tests(project: Path) -> None:
    sync(project)
    code, status = dbt(project)
    assert code == 0
    assert {n: s for n, s in status.items() if not n.startswith(("unique", "accepted", "relationships"))} == {
        "houses": "success",
        "animals": "success",
    }
    assert sorted(s for n, s in status.items() if n.startswith(("unique", "accepted", "relationships"))) == ["pass"] * 4


def test_a_primary_key_of_several_columns_is_tested_as_a_whole(project: Path) -> None:
    key = "id, logicalType: string, required: true, primaryKey: true"
    contract = ANIMALS.replace(key, f"{key}, primaryKeyPosition: 2").replace(
        "house, logicalType: string,", "house, logicalType: string, primaryKey: true, primaryKeyPosition: 1,"
    )
    (project / "contracts/zoo/animals.yaml").write_text(contract)
    sync(project)
    ((model,),) = [yaml.safe_load((project / "models/zoo/animals.yml").read_text())["models"]]
    tests = [t["unique"]["arguments"]["column_name"] for t in model["data_tests"]]
    assert tests == ['row("house", "id")', 'row("kind", "house")']
    assert [c["name"] for c in model["columns"] if "unique" in c.get("data_tests", [])] == []


@pytest.mark.integration
@pytest.mark.parametrize(
    ("old", "new", "node"),
    [
        ("'1' as id", "null::varchar as id", "animals"),
        ("'1' as id", "1 as id", "animals"),
        ("'cat' as kind,", "", "animals"),
        ("'cat' as kind", "'bot' as kind", "accepted_values_animals_kind"),
        ("'h' as house", "'g' as house", "relationships_animals_house"),
        ("'1' as id", "unnest(['1', '2']) as id", "unique_animals_row"),
    ],
)
def test_dbt_refuses_a_model_that_breaks_its_contract(project: Path, old: str, new: str, node: str) -> None:
    sync(project)
    (project / "models/zoo/animals.sql").write_text(MODEL.replace(old, new))
    code, status = dbt(project)
    assert code == 1
    assert [s for n, s in status.items() if n.startswith(node)] in (["error"], ["fail"])


def test_the_project_s_own_files_are_in_step() -> None:
    assert sync(PACKAGE, check=True) == []
