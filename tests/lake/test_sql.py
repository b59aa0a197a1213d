"""Names and texts come back from DuckDB as they went in, whatever is in them."""

from __future__ import annotations

import duckdb
from hypothesis import assume, given
from hypothesis import strategies as st

from lake.sql import identifier, literal, literals, texts

DUCKDB = duckdb.connect()  # opening one takes longer than a query
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@given(values=st.lists(TEXTS, min_size=1, max_size=4))
def test_texts_keep_every_character(values: list[str]) -> None:
    assert DUCKDB.sql(f"select [{literals(values)}], {literal(values[0])}").fetchall() == [(values, values[0])]


@given(values=st.lists(TEXTS, max_size=4), name=TEXTS)
def test_the_texts_of_a_statement_are_its_literals_and_no_names(values: list[str], name: str) -> None:
    assert texts(f"select {identifier(name)}, [{literals(values)}] as {identifier(name, name)}, 1") == values


@given(schema=TEXTS, table=TEXTS)
def test_names_keep_every_character(schema: str, table: str) -> None:
    assume(schema.lower() not in ("main", "temp", "system"))
    DUCKDB.begin()
    try:
        DUCKDB.execute(f"create schema if not exists {identifier(schema)}")
        DUCKDB.execute(f"create table if not exists {identifier(schema, table)} as select 1 as a")
        rows = DUCKDB.execute(
            "select schema_name, table_name from duckdb_tables() where lower(schema_name) = lower($1)", [schema]
        )
        assert (schema, table) in rows.fetchall()
    finally:
        DUCKDB.rollback()


def test_numbers_are_written_exactly() -> None:
    assert DUCKDB.sql(f"select {literal(7)}, {literal(0.1)}::double").fetchall() == [(7, 0.1)]
