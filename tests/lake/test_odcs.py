"""Contracts say nothing that would not be kept."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lake.contract import missing_counterparts
from lake.odcs import SCALAR_TYPES, structure_errors
from lake.schema import PACKAGE, SCALARS, contract, tables

TABLES = tables(PACKAGE)


@pytest.mark.parametrize("table", TABLES)
def test_every_contract_of_the_project_is_well_formed(table: str) -> None:
    assert list(structure_errors(table, contract(PACKAGE, table))) == []


def test_each_contract_has_its_model_and_each_model_its_contract() -> None:
    assert missing_counterparts(PACKAGE) == []
    assert "curated/examples" in TABLES


def test_every_contracted_column_says_what_it_is() -> None:
    silent = [
        f"{t}.{p['name']}"
        for t in TABLES
        for p in contract(PACKAGE, t)["schema"][0]["properties"]
        if not p.get("description")
    ]
    assert silent == []


def sound() -> dict[str, Any]:
    column = {"name": "a", "logicalType": "string"}
    table = {"name": "t", "physicalType": "table", "description": "Things. One row per thing.", "properties": [column]}
    root = {"apiVersion": "v3.1.0", "kind": "DataContract", "id": "x.t", "name": "x.t", "version": "1.0.0"}
    return {**root, "status": "active", "schema": [table]}


def test_a_sound_contract_has_no_problem() -> None:
    assert list(structure_errors("x/t", sound())) == []


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (["servers"], [], "unknown key 'servers'"),
        (["kind"], "Contract", "kind is 'Contract', expected DataContract"),
        (["id"], "x.other", "id is 'x.other', expected x.t"),
        (["version"], "1.0", "version is '1.0', expected three numbers"),
        (["apiVersion"], "v2.2.2", "apiVersion is 'v2.2.2'"),
        (["schema"], [], "exactly one table"),
        (["schema", 0, "description"], "Things.", "must end with its grain"),
        (["schema", 0, "description"], "One row per thing. Some things.", "must end with its grain"),
        (["schema", 0, "physicalType"], "external", "expected table or view"),
        (["schema", 0, "properties"], [], "no properties"),
        (["schema", 0, "properties", 0, "logicalType"], "text", "logicalType 'text'"),
        (["schema", 0, "properties", 0, "nullable"], True, "unknown key 'nullable'"),
        (["schema", 0, "properties", 0, "required"], "yes", "required is 'yes'"),
        (["schema", 0, "properties", 0, "logicalType"], "array", "array without items"),
        (["schema", 0, "properties", 0, "relationships"], [{"to": "b"}], "expected to: table.column"),
        (["schema", 0, "properties", 0, "relationships"], ["b.id"], "relationship 'b.id', expected to: table.column"),
        (["schema", 0, "properties", 0, "relationships"], None, "a: relationships is None, expected a list"),
        (["schema", 0, "properties", 0, "quality"], {"metric": "x"}, "expected a list"),
        (["schema", 0, "quality"], None, "the table: quality is None, expected a list"),
        (["schema", 0, "properties", 0, "quality"], [{"metric": "nullValues", "mustBe": 0}], "metric 'nullValues'"),
        (["schema", 0, "properties", 0, "quality"], [{"type": "custom", "mustBe": 0}], "type 'custom'"),
        (["schema", 0, "quality"], [{"type": "sql", "name": "n", "query": "select 1", "mustBe": 0}], "over ${object}"),
        (["schema", 0, "quality"], [{"metric": "rowCount"}], "no bound"),
        (
            ["schema", 0, "quality"],
            [{"metric": "duplicateValues", "arguments": {"properties": ["b"]}, "mustBe": 0}],
            "columns of this table",
        ),
    ],
)
def test_what_would_not_be_kept_is_refused_and_named(path: list[Any], value: Any, says: str) -> None:
    wrong = copy.deepcopy(sound())
    place: Any = wrong
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert any(says in p for p in structure_errors("x/t", wrong)), list(structure_errors("x/t", wrong))


def test_columns_of_one_name_are_refused_nested_ones_too() -> None:
    wrong = sound()
    inner = {"name": "o", "logicalType": "object", "properties": [{"name": n, "logicalType": "string"} for n in "aA"]}
    wrong["schema"][0]["properties"].append(inner)
    assert list(structure_errors("x/t", wrong)) == ["property o.A is there twice"]


def test_each_type_that_a_contract_may_have_has_its_arrow_type() -> None:
    assert {*SCALAR_TYPES} == {*SCALARS}
