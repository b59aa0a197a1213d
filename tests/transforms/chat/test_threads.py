"""Calls of a trace put together to conversations, in Python and in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from transforms.chat.blocks import Message, message
from transforms.chat.threads import threads
from transforms.chat.units import message_keys

MACROS = Path(__file__).resolve().parents[3] / "transforms" / "macros" / "spans.sql"
SYSTEM, USER, MORE = message("system", "s"), message("user", "u"), message("user", "more")
CALL = message("assistant", None, tool_calls=[{"id": "c", "name": "f", "arguments": '{"x": 1}'}], reasoning="hm")
ECHO = message("assistant", "", tool_calls=[{"id": None, "name": "f", "arguments": '{"x":1}'}])
RESULT, DONE = message("tool", "1", tool_call_id="c"), message("assistant", "done")


def test_a_growing_call_is_one_conversation_and_the_first_writing_of_a_message_stays() -> None:
    calls = [[SYSTEM, USER, CALL], [SYSTEM, USER, ECHO, RESULT, DONE]]
    assert threads(calls) == [[SYSTEM, USER, CALL, RESULT, DONE]]


def test_calls_that_hold_only_what_is_new_go_to_the_end() -> None:
    assert threads([[USER, CALL], [RESULT, DONE]]) == [[USER, CALL, RESULT, DONE]]
    assert threads([[USER, CALL], [CALL, RESULT, DONE]]) == [[USER, CALL, RESULT, DONE]]


def test_another_agent_is_another_conversation_and_a_repeated_call_is_none() -> None:
    critic = [message("system", "critic"), USER, DONE]
    assert threads([[SYSTEM, USER], critic, [SYSTEM, USER], [SYSTEM, USER, DONE]]) == [[SYSTEM, USER, DONE], critic]


turn = st.sampled_from([SYSTEM, USER, MORE, CALL, ECHO, RESULT, DONE])
traces = st.lists(st.lists(turn, min_size=1, max_size=5), min_size=1, max_size=6)


@given(calls=traces)
def test_no_message_vanishes_and_none_is_invented(calls: list[list[Message]]) -> None:
    made = [message_keys(t) for t in threads(calls)]
    for keys in map(message_keys, calls):
        assert any(keys == t[i : i + len(keys)] for t in made for i in range(len(t)))
    assert {k for t in made for k in t} == {k for c in calls for k in message_keys(c)}


@pytest.fixture(scope="module")
def reduce_sql() -> str:
    """The reduction as the model says it, over a column `calls`."""
    text = MACROS.read_text() + "{{ grow_threads('threads', 'call[1]') }}"
    grown = jinja2.Environment().from_string(text).render().strip()
    return f"select list_reduce(?::{TYPE}, lambda threads, call: {grown})"


TYPE = "struct(keys varchar[], goes_on boolean, parts struct(record_id varchar, overlap bigint)[])[][]"


@pytest.mark.integration  # takes seconds
@settings(max_examples=examples(150))
@given(calls=traces)
def test_sql_makes_the_same_conversations_as_python(reduce_sql: str, calls: list[list[Message]]) -> None:
    rows: list[Any] = [
        [
            {
                "keys": message_keys(c),
                "goes_on": c[0]["role"] in ("assistant", "tool"),
                "parts": [{"record_id": str(i), "overlap": 0}],
            }
        ]
        for i, c in enumerate(calls)
    ]
    with duckdb.connect() as connection:
        ((made,),) = connection.execute(reduce_sql, [rows]).fetchall()
    assembled = [[m for p in t["parts"] for m in calls[int(p["record_id"])][p["overlap"] :]] for t in made]
    assert assembled == threads(calls)
