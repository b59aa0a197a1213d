"""Names and texts come back from DuckDB as they went in, whatever is in them."""

from __future__ import annotations

import duckdb
from hypothesis import assume, given
from hypothesis import strategies as st

from lake.sql import identifier, literal, literals

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
def test_texts_keep_every_character(texts: list[str]) -> None:
    with duckdb.connect() as connection:
        assert connection.sql(f"select [{literals(texts)}], {literal(texts[0])}").fetchall() == [(texts, texts[0])]


@given(schema=TEXTS, table=TEXTS)
def test_names_keep_every_character(schema: str, table: str) -> None:
    assume(schema.lower() not in ("main", "temp", "system"))
    with duckdb.connect() as connection:
        connection.execute(f"create schema if not exists {identifier(schema)}")
        connection.execute(f"create table if not exists {identifier(schema, table)} as select 1 as a")
        rows = connection.execute(
            "select schema_name, table_name from duckdb_tables() where lower(schema_name) = lower($1)", [schema]
        )
        assert (schema, table) in rows.fetchall()


def test_numbers_are_written_exactly() -> None:
    with duckdb.connect() as connection:
        assert connection.sql(f"select {literal(7)}, {literal(0.1)}::double").fetchall() == [(7, 0.1)]
