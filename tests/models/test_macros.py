"""Macros against what they must agree with: H of Python, the kinds, and the contracts."""

from __future__ import annotations

import ast
import csv
import re
from typing import Any

import duckdb
import jinja2
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.identity import H
from lake.kinds import KINDS
from lake.schema import arrow, contract, tables
from tests.conftest import ROOT
from tests.effort import examples

DBT_TAGS = ("extended.sql", "scoped_tests.sql")  # `materialization` and `test` are no tags of Jinja's own
FILES = [file for file in sorted((ROOT / "transforms/macros").glob("*.sql")) if file.name not in DBT_TAGS]
MACROS = "\n".join(file.read_text("utf-8") for file in FILES)
ENVIRONMENT = jinja2.Environment(extensions=["jinja2.ext.do"])
# What dbt gives: `return` hands a value on, `source` names a table.
ENVIRONMENT.globals.update({"return": lambda value: value, "source": lambda schema, name: f'{schema}."{name}"'})
MODULE = ENVIRONMENT.from_string(MACROS).module
DUCKDB = duckdb.connect()  # opening one takes longer than a query
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
EXAMPLES = arrow(ROOT, "curated/examples").empty_table()


def macro(name: str, *args: Any) -> str:
    return str(getattr(MODULE, name)(*args))


def columns(select: str, **relations: pa.Table) -> dict[str, str]:
    """DuckDB's types of the columns of a SELECT, which knows nothing of what may be null."""
    with duckdb.connect() as connection:
        for name, relation in relations.items():
            connection.register(name, relation)
        return {name: data_type for name, data_type, *_ in connection.execute(f"describe {select}").fetchall()}


def valid_values(table: str, column: str) -> list[str]:
    """What a contract lets a column hold."""
    (prop,) = [p for p in contract(ROOT, table)["schema"][0]["properties"] if p["name"] == column]
    return [v for rule in prop.get("quality", []) for v in rule.get("arguments", {}).get("validValues", [])]


@settings(max_examples=examples(50))
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_h_is_h_of_python(fields: list[str]) -> None:
    places = [f"fields[{place}]" for place in range(1, len(fields) + 1)]
    row = DUCKDB.execute(f"select {macro('h', places)} from (select ? as fields)", [fields]).fetchone()
    assert row == (H(*fields),)


@settings(max_examples=examples(50))
@given(st.lists(TEXTS, max_size=5), st.randoms())
def test_h_of_rows_is_h_of_the_rows_in_their_order(fields: list[str], random: Any) -> None:
    rows = list(enumerate(fields))
    random.shuffle(rows)
    DUCKDB.execute("create or replace temp table t (place bigint, field varchar)")
    if rows:
        DUCKDB.executemany("insert into t values (?, ?)", rows)
    row = DUCKDB.execute(f"select {macro('h_of_rows', 'field', 'place')} from t").fetchone()
    assert row == (H(*fields),)


def test_h_is_spelled_out_nowhere_but_in_its_own_file() -> None:
    folders = ("transforms/macros", "models", "tests/dbt")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.sql") if file.name != "identity.sql"]
    assert [file.name for file in files if "sha256" in file.read_text("utf-8")] == []


def test_staged_nulls_and_what_macros_make_have_the_types_of_the_contract() -> None:
    nulls = columns(f"select {macro('staged_nulls', 'trace_id', 'chat', 'item', 'outcome', 'document', 'text')}")
    made = columns(
        f"""
        with given as (select cast(null as json) as options, {macro("staged_nulls", "messages")})
        select {macro("joined_turn", "[messages]")} as messages, {macro("provenance", None, "options")} as provenance
        from (select messages[1] as messages, options from given)
        """
    )
    assert len(nulls) == 16
    promised = columns("select * from examples", examples=EXAMPLES)
    for types in (nulls, made):
        assert types == {name: promised[name] for name in types}


def test_staged_columns_are_those_of_the_contract_that_staging_gives() -> None:
    staged = {name.strip() for name in macro("staged_columns").split(",")}
    made_later = {"prompt", "response", "text_hash", "prompt_hash", "response_hash", "row_hash"}
    assert staged == {*EXAMPLES.column_names} - made_later


def test_every_kind_lands_in_a_table_whose_ids_are_read() -> None:
    assert re.findall(r'from raw\."(\w+)"', macro("landed_ids")) == [*KINDS]
    assert {f"raw/{kind}" for kind in KINDS} <= {*tables(ROOT, "raw")}


@pytest.mark.parametrize("table", ["curated/examples", "curated/decisions"])
def test_contracts_name_every_kind(table: str) -> None:
    assert valid_values(table, "kind") == [*KINDS]


def test_the_contract_of_decisions_names_every_stage_in_its_order() -> None:
    assert valid_values("curated/decisions", "stage") == [
        stage["name"] for stage in ast.literal_eval(macro("stages").strip())
    ]


def test_train_tables_are_those_under_contract() -> None:
    assert {f"train/{name}" for name in ast.literal_eval(macro("train_tables").strip())} == {*tables(ROOT, "train")}


def test_every_use_is_a_table_under_contract() -> None:
    facts = (ROOT / "models/curated/example_facts.sql").read_text("utf-8")
    uses = re.findall(r"then '((?:train|eval)_\w+)'", facts)
    under_contract = [table.split("/")[1] for layer in ("train", "eval") for table in tables(ROOT, layer)]
    assert sorted(uses) == sorted(under_contract)


def test_every_threshold_is_asked_for_and_there() -> None:
    files = [file for folder in ("models", "tests/dbt") for file in (ROOT / folder).rglob("*.sql")]
    asked = {name for file in files for name in re.findall(r'threshold\("(\w+)"\)', file.read_text("utf-8"))}
    with (ROOT / "contracts/reference/thresholds.csv").open(encoding="utf-8", newline="") as file:
        assert sorted(asked) == sorted(row["name"] for row in csv.DictReader(file))
