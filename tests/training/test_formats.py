"""Rows as TRL and as providers want them."""

from __future__ import annotations

import datetime
from typing import Any

from training.formats import hf_messages, hf_tools, provider_row, shape_of, split_completion, trl_row

NULLS: dict[str, Any] = dict.fromkeys(
    ["content", "reasoning", "tool_calls", "tool_call_id", "name", "content_parts", "weight"]
)
CALLS = [{"id": "c1", "name": "f", "arguments": '{"x": 1}'}, {"id": None, "name": "g", "arguments": None}]
TURNS = [
    NULLS | {"role": "user", "content": "hi"},
    NULLS | {"role": "assistant", "reasoning": "hm", "tool_calls": CALLS},
    NULLS | {"role": "tool", "content": "4", "tool_call_id": "c1", "name": "f"},
    NULLS | {"role": "assistant", "content": "ok", "weight": 0},
]


def test_hf_messages_have_no_null_key_and_arguments_as_objects() -> None:
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
        {"type": "function", "function": {"name": "g", "arguments": {}}},
    ]
    assert hf_messages(TURNS) == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": calls},
        {"role": "tool", "content": "4", "tool_call_id": "c1", "name": "f"},
        {"role": "assistant", "content": "ok", "weight": 0},
    ]


def test_provider_rows_keep_the_text_of_arguments_and_leave_absent_content_out() -> None:
    row = provider_row({"messages": TURNS, "tools": '[{"type": "function"}]'}, "sft")
    assert row["tools"] == [{"type": "function"}]
    assert row["messages"][1] == {
        "role": "assistant",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
            {"type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }
    assert "tools" not in provider_row({"messages": TURNS, "tools": None}, "sft")


def test_every_assistant_turn_says_its_weight_when_asked() -> None:
    assert [turn.get("weight") for turn in hf_messages(TURNS, weights=True)] == [None, 1, None, 0]


def test_parts_that_are_no_text_follow_the_text() -> None:
    (turn,) = hf_messages([NULLS | {"role": "user", "content": "see", "content_parts": '[{"type": "image"}]'}])
    assert turn["content"] == [{"type": "text", "text": "see"}, {"type": "image"}]


def test_a_completion_is_what_follows_the_last_user_turn() -> None:
    assert split_completion(TURNS) == (TURNS[:1], TURNS[1:])
    assert split_completion(TURNS[1:]) == ([], TURNS[1:])


def test_shapes_follow_from_columns() -> None:
    assert shape_of(["example_id", "messages", "tools"]) == "sft"
    assert shape_of(["messages", "chosen", "rejected"]) == "pair"
    assert shape_of(["messages", "label"]) == "unpaired"
    assert shape_of(["example_id", "text", "url"]) == "text"
    assert shape_of(["example_id", "question", "answer", "text"]) == "rows"
    assert shape_of(["kind", "shape", "messages", "chosen", "rejected", "label", "text", "text_hash"]) == "rows"


def test_tools_are_a_list_or_nothing() -> None:
    assert hf_tools(None) is None
    assert hf_tools('{"type": "function"}') == [{"type": "function"}]


def test_rows_of_no_shape_have_their_values_as_lake_sql_prints_them() -> None:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=datetime.UTC)
    row = {"id": "a", "at": at, "nested": [{"at": at, "share": float("nan")}], "data": b"\x00"}
    shown = {"id": "a", "at": at.isoformat(), "nested": [{"at": at.isoformat(), "share": None}], "data": "AA=="}
    assert trl_row(row, "id", "rows", tools=False) == shown
