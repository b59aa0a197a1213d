"""Recorded calls: Anthropic and OpenAI, whole and streamed, requests and responses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.chat.blocks import UnreadableShape, message
from transforms.chat.calls import answers
from transforms.chat.formats import openai_completion

CASSETTES = "traces/openinference/js/packages/openinference-instrumentation-anthropic/test/cassettes"
JAVA = "traces/openinference/java/instrumentation"


def cassette(data: Path, name: str) -> dict[str, Any]:
    """Return the one message of a cassette."""
    (unit,) = openai_completion.units(json.loads((data / CASSETTES / f"{name}.json").read_bytes()))
    (turn,) = unit["messages"]
    assert unit["provenance"]["generator_model"] == "claude-sonnet-4-6"
    return turn  # type: ignore[no-any-return]


def test_a_streamed_answer_reads_as_the_whole_one(data: Path) -> None:
    whole, streamed = (cassette(data, f"reasoning-tool-use-{kind}streaming") for kind in ("non-", ""))
    for turn in (whole, streamed):
        (call,) = turn.pop("tool_calls")
        assert (call["name"], json.loads(call["arguments"])) == ("get_weather", {"location": "San Francisco"})
    assert whole == streamed
    assert whole["content"] == "Sure! Let me check the weather in San Francisco for you!"
    assert whole["reasoning"].startswith("The user wants to know the weather in San Francisco.")


def test_redacted_thinking_is_kept_beside_the_text(data: Path) -> None:
    whole, streamed = (cassette(data, f"redacted-thinking-{kind}streaming") for kind in ("non-", ""))
    assert whole == streamed
    assert whole["content"] == "42"
    assert json.loads(whole["content_parts"]) == [
        {"type": "redacted_thinking", "data": "SYNTHETIC_REDACTED_ENCRYPTED_DATA"}
    ]


def test_every_cassette_holds_one_answer_with_its_text(data: Path) -> None:
    names = sorted(p.stem for p in (data / CASSETTES).glob("*.json"))
    assert len(names) == 8
    assert all(cassette(data, n)["content"] for n in names)


def test_recorded_openai_responses(data: Path) -> None:
    first, second = sorted((data / JAVA).rglob("v1_chat_completions-*.json"))
    (unit,) = openai_completion.units(json.loads(first.read_bytes()))
    assert unit["messages"] == [
        message(
            "assistant",
            None,
            tool_calls=[{"id": "call_Qm51xgE57uzoj2f6qkZAWwb4", "name": "add", "arguments": '{"a":45,"b":79}'}],
        )
    ]
    (unit,) = openai_completion.units(json.loads(second.read_bytes()))
    assert unit["messages"] == [message("assistant", "The sum of 45 plus 79 is 124.")]
    assert unit["created_at"].isoformat() == "2026-03-20T15:09:52+00:00"


REQUEST = {
    "model": "m",
    "temperature": 0.5,
    "seed": 7,
    "messages": [{"role": "user", "content": "2+2?"}],
    "tools": [{"type": "function", "function": {"name": "f"}}],
}
RESPONSE = {"model": "m-1", "created": 1749895200, "choices": [{"message": {"role": "assistant", "content": "4"}}]}
ENVELOPES: list[dict[str, Any]] = [
    {"request": REQUEST, "response": RESPONSE},
    {"request": json.dumps(REQUEST), "response": json.dumps(RESPONSE)},
    {"request": {"url": "u", "body": json.dumps(REQUEST)}, "response": {"status": 200, "body": RESPONSE}},
    {"reqPayload": REQUEST, "respPayload": RESPONSE},
    REQUEST | RESPONSE,
    REQUEST | {"response": RESPONSE},
]


def test_envelopes_of_one_call_read_the_same() -> None:
    for record in ENVELOPES:
        (unit,) = openai_completion.units(record)
        assert unit["messages"] == [message("user", "2+2?"), message("assistant", "4")], record
        assert json.loads(unit["tools"]) == REQUEST["tools"]
        assert (unit["provenance"]["temperature"], unit["provenance"]["seed"]) == (0.5, 7)


def test_each_choice_is_a_chat_of_its_own_and_a_failed_call_keeps_its_request() -> None:
    two = RESPONSE | {"choices": [{"message": {"content": "4"}}, {"message": {"content": "5"}}]}
    units = openai_completion.units({"request": REQUEST, "response": two})
    assert [u["messages"][-1]["content"] for u in units] == ["4", "5"]
    (failed,) = openai_completion.units({"request": REQUEST, "response": {"error": {"message": "busy"}}})
    assert (failed["messages"], failed["outcome"]["verdict"]) == ([message("user", "2+2?")], "error")


def test_a_batch_file_of_requests_and_one_of_responses() -> None:
    asked = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": REQUEST}
    answered = {"custom_id": "1", "response": {"status_code": 200, "body": RESPONSE}, "error": None}
    assert openai_completion.units(asked)[0]["messages"] == [message("user", "2+2?")]
    assert openai_completion.units(answered)[0]["messages"] == [message("assistant", "4")]
    claude = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "4"}]}
    for result in ({"type": "succeeded", "message": claude}, claude):
        (unit,) = openai_completion.units({"custom_id": "1", "result": result})
        assert unit["messages"] == [message("assistant", "4")]
    (unit,) = openai_completion.units({"custom_id": "1", "params": REQUEST})
    assert unit["messages"] == [message("user", "2+2?")]


def test_one_chunk_of_a_stream_is_no_answer() -> None:
    chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "4"}}]}
    with pytest.raises(UnreadableShape):
        openai_completion.units(chunk)
    assert [u["messages"] for u in openai_completion.units([chunk, chunk])] == [[message("assistant", "44")]]


def test_openais_responses_are_one_turn_after_their_instructions() -> None:
    response = {
        "object": "response",
        "instructions": "be brief",
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        ],
    }
    called = message("assistant", None, tool_calls=[{"id": "c", "name": "f", "arguments": "{}"}])
    assert openai_completion.units(response)[0]["messages"] == [message("system", "be brief"), called]
    (unit,) = openai_completion.units({"request": {"input": "hi", "instructions": "x"}, "response": response})
    assert unit["messages"] == [message("system", "x"), message("user", "hi"), called]


@given(
    text=st.text(max_size=30),
    arguments=st.dictionaries(st.text(max_size=4), st.text(max_size=8), max_size=3).map(json.dumps),
    cuts=st.integers(1, 7),
)
def test_streamed_chunks_add_up_to_the_response_they_were_cut_from(text: str, arguments: str, cuts: int) -> None:
    def pieces(whole: str) -> list[str]:
        return [whole[i : i + cuts] for i in range(0, len(whole), cuts)]

    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": p} for p in pieces(text)]
    deltas += [{"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]}]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": p}}]} for p in pieces(arguments)]
    chunks = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": d}]} for d in deltas]
    events = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"
    expected = [[message("assistant", text, tool_calls=[{"id": "c", "name": "f", "arguments": arguments}])]]
    assert answers(events) == answers(chunks) == expected
