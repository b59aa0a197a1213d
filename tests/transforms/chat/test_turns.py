"""One turn in each dialect, whole values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transforms.chat.blocks import UnreadableShape, arguments_text, message
from transforms.chat.turns import all_turns, turns

CALL = [{"id": "c1", "name": "weather", "arguments": '{"city":"Köln"}'}]
CALLING = message("assistant", None, tool_calls=CALL)
ANSWER = message("tool", "rain", tool_call_id="c1")
IMAGE = {"type": "image_url", "image_url": {"url": "data:..."}}
ARGUMENTS = {"city": "Köln"}

DIALECTS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "OpenAI call": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Köln"}'}}
            ],
        },
        [CALLING],
    ),
    "OpenAI answer": ({"role": "tool", "tool_call_id": "c1", "content": "rain"}, [ANSWER]),
    "OpenAI old call": (
        {"role": "assistant", "function_call": {"name": "weather", "arguments": '{"city":"Köln"}'}},
        [message("assistant", None, tool_calls=[CALL[0] | {"id": None}])],
    ),
    "OpenAI old answer": (
        {"role": "function", "name": "weather", "content": "rain"},
        [message("tool", "rain", name="weather")],
    ),
    "OpenAI parts": (
        {"role": "user", "content": [{"type": "text", "text": "a"}, IMAGE, {"type": "text", "text": "b"}]},
        [message("user", "a\nb", content_parts=json.dumps([IMAGE], separators=(",", ":")))],
    ),
    "OpenAI developer": ({"role": "developer", "content": "be brief"}, [message("system", "be brief")]),
    "OpenAI refusal": ({"role": "assistant", "content": None, "refusal": "no"}, [message("assistant", "no")]),
    "OpenAI weight": (
        {"role": "assistant", "content": "a", "weight": 0},
        [message("assistant", "a", weight=0)],
    ),
    "reasoning_content": (
        {"role": "assistant", "content": "4", "reasoning_content": "2+2"},
        [message("assistant", "4", reasoning="2+2")],
    ),
    "Anthropic thinking and call": (
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "let me look"},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": ARGUMENTS},
            ],
        },
        [message("assistant", "let me look", reasoning="hm", tool_calls=CALL)],
    ),
    "Anthropic result beside text": (
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "rain"}]},
                {"type": "text", "text": "and now?"},
            ],
        },
        [ANSWER, message("user", "and now?")],
    ),
    "Anthropic server tool inside a turn": (
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "c1", "name": "weather", "input": ARGUMENTS},
                {"type": "web_search_tool_result", "tool_use_id": "c1", "content": "rain"},
                {"type": "text", "text": "it "},
                {"type": "text", "text": "rains", "citations": [{"url": "u"}]},
            ],
        },
        [CALLING, ANSWER, message("assistant", "it rains")],
    ),
    "Gemini call": (
        {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "weather", "args": ARGUMENTS}}]},
        [CALLING],
    ),
    "Gemini answer": (
        {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"sky": "rain"}}}]},
        [message("tool", '{"sky":"rain"}', name="weather")],
    ),
    "OpenTelemetry parts": (
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "hm"},
                {"type": "text", "content": "so"},
                {"type": "tool_call", "id": "c1", "name": "weather", "arguments": ARGUMENTS},
            ],
        },
        [message("assistant", "so", reasoning="hm", tool_calls=CALL)],
    ),
    "OpenTelemetry answer": (
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "rain"}]},
        [ANSWER],
    ),
    "Vercel call": (
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": ARGUMENTS}],
        },
        [CALLING],
    ),
    "Vercel answer": (
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c1",
                    "toolName": "weather",
                    "output": {"type": "text", "value": "rain"},
                }
            ],
        },
        [message("tool", "rain", tool_call_id="c1", name="weather")],
    ),
    "LangChain dump": (
        {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "hi"}},
        [message("user", "hi")],
    ),
    "LangChain call": (
        {"type": "ai", "content": "", "tool_calls": [{"id": "c1", "name": "weather", "args": ARGUMENTS}]},
        [message("assistant", "", tool_calls=CALL)],
    ),
    "Koog, calls under the role tool": (
        {
            "role": "tool",
            "content": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": ARGUMENTS}],
        },
        [CALLING],
    ),
    "ShareGPT": ({"from": "gpt", "value": "hi"}, [message("assistant", "hi")]),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_turn_reads_the_same_in_every_dialect(dialect: str) -> None:
    raw, expected = DIALECTS[dialect]
    assert turns(raw) == expected


def test_items_of_one_response_are_one_turn() -> None:
    items = [
        {"role": "user", "content": "weather?"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Köln"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "It rains."}],
        },
    ]
    assert all_turns(items) == [
        message("user", "weather?"),
        message("assistant", None, reasoning="hm", tool_calls=CALL),
        ANSWER,
        message("assistant", "It rains."),
    ]


def test_a_role_that_names_a_tool_called_before_is_its_answer_and_any_other_stranger_is_refused() -> None:
    call = DIALECTS["OpenAI call"][0]
    assert all_turns([call, {"role": "weather", "content": "rain"}])[1] == message("tool", "rain", name="weather")
    with pytest.raises(UnreadableShape):
        all_turns([call, {"role": "critic", "content": "bad"}])


blocks = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, st.text(max_size=4)),
    st.builds(lambda t: {"type": "thinking", "thinking": t}, st.text(min_size=1, max_size=4)),
    st.builds(lambda n: {"type": "tool_use", "id": n, "name": n, "input": {}}, st.text(max_size=3)),
    st.builds(lambda n: {"type": "tool_result", "tool_use_id": n, "content": n}, st.text(max_size=3)),
    st.just({"type": "image", "source": {}}),
)


@given(contents=st.lists(st.lists(blocks, max_size=5), min_size=1, max_size=4))
def test_no_message_and_no_block_vanishes(contents: list[list[dict[str, Any]]]) -> None:
    made = [turns({"role": "assistant", "content": c}) for c in contents]
    assert all(len(m) >= 1 for m in made)
    flat = [m for one in made for m in one]
    wanted = [b for c in contents for b in c]
    kinds = {k: [b for b in wanted if b["type"] == k] for k in ("text", "thinking", "tool_use", "tool_result", "image")}
    assert sum(len(m.get("tool_calls", [])) for m in flat) == len(kinds["tool_use"])
    assert [m["content"] for m in flat if m["role"] == "tool"] == [b["content"] for b in kinds["tool_result"]]
    assert sum(len(json.loads(m.get("content_parts", "[]"))) for m in flat) == len(kinds["image"])
    said = "".join(m["content"] or "" for m in flat if m["role"] == "assistant").replace("\n", "")
    assert said == "".join(b["text"] for b in kinds["text"]).replace("\n", "")
    thought = "".join(m.get("reasoning", "") for m in flat).replace("\n", "")
    assert thought == "".join(b["thinking"] for b in kinds["thinking"]).replace("\n", "")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text(max_size=3), json_values))
def test_arguments_round_trip_as_json_text(value: dict[str, Any]) -> None:
    text = arguments_text(value)
    assert text is not None
    assert json.loads(text) == value
    assert arguments_text(text) == text


def no_json(constant: str) -> None:
    """Refuse the constants that Python's parser takes and JSON (RFC 8259) has not."""
    raise ValueError(constant)


def strictly_parsed(text: str) -> Any:
    return json.loads(text, parse_constant=no_json)


@given(text=st.text())
@example("Infinity")
@example("-Infinity")
@example("NaN")
@example('{"x": NaN}')
def test_arguments_that_are_no_json_still_parse_and_keep_every_character(text: str) -> None:
    kept = strictly_parsed(arguments_text(text) or "")
    try:
        expected = strictly_parsed(text)
    except ValueError:
        expected = text if text.strip() else {}
    assert kept == expected
