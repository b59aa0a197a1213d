"""Spans in every convention that says what a model was given and answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from transforms.chat.blocks import message
from transforms.chat.formats import spans
from transforms.chat.formats.span_fields import flat_attributes
from transforms.chat.units import NO_CHAT, time

FIXTURES = "traces/openinference/js/packages/openinference-genai/test/__fixtures__"
CALL = [{"id": "1234", "name": "get_weather", "arguments": '{"location":"Paris"}'}]
PARIS = [
    message("user", "Weather in Paris?"),
    message("assistant", "Absolutely! Let me check the weather for you.", tool_calls=CALL),
    message("tool", "rainy, 57°F", tool_call_id="1234"),
    message("assistant", "The weather in Paris is currently rainy with a temperature of 57°F."),
]
IDS = {"traceId": "aa", "spanId": "bb", "parentSpanId": "", "startTimeUnixNano": "1749895200000000000"}
CHAT = [message("system", "be brief"), message("user", "2+2?"), message("assistant", "4")]


@pytest.mark.parametrize(
    "name",
    [
        "otel_genai_client_span_tool_calls",
        "otel_genai_deprecated_client_span_tool_calls",
        "openinference_client_span_tool_calls",
        "openinference_client_span_input_output_only",
    ],
)
def test_one_call_reads_the_same_in_four_conventions(data: Path, name: str) -> None:
    (unit,) = spans.units(json.loads((data / FIXTURES / f"{name}.json").read_bytes()))
    assert unit["messages"] == PARIS
    assert unit["provenance"]["temperature"] == 0.5
    assert "span" not in unit  # bare attributes name no trace


def test_a_tools_span_is_no_chat(data: Path) -> None:
    (unit,) = spans.units(json.loads((data / FIXTURES / "otel_genai_tool_execution_span.json").read_bytes()))
    assert (unit["messages"], unit["problem"]) == (None, NO_CHAT)


def test_vercel_spans_hold_what_their_operations_say(data: Path) -> None:
    path = "traces/openinference/js/packages/openinference-vercel/test/__fixtures__/v6-spans/all-spans.json"
    read = [(s, spans.units(s)[0]) for s in json.loads((data / path).read_bytes())]
    assert [len(u["messages"] or []) for _, u in read] == [2, 2, 5, 5, 2, 2, 2, 2, 0, 0]
    for span, unit in read:
        assert unit["span"]["trace_id"] == span["spanContext"]["traceId"]
        assert unit["span"]["started_at"] == time(span["startTime"])
        assert unit.get("problem") == (NO_CHAT if "embed" in span["name"] else None)
        if unit["messages"]:
            answer = span["attributes"].get("ai.response.text", span["attributes"].get("ai.response.object"))
            assert unit["messages"][-1] == message("assistant", answer)


def otlp(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP writes them."""
    return [{"key": k, "value": otlp_value(v)} for k, v in attributes.items()]


def otlp_value(value: Any) -> dict[str, Any]:
    """Return a typed value."""
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp_value(v) for v in value]}}
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}


CONVENTIONS: dict[str, dict[str, Any]] = {
    "current": {
        "gen_ai.operation.name": "chat",
        "gen_ai.system_instructions": '[{"type":"text","content":"be brief"}]',
        "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"2+2?"}]}]',
        "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"4"}]}]',
    },
    "indexed, as OpenLLMetry writes": {
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "be brief",
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": '[{"type":"text","text":"2+2?"}]',
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "4",
    },
    "OpenInference": {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "be brief",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": "2+2?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "4",
    },
    "input and output values": {
        "openinference.span.kind": "LLM",
        "input.value": '{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"2+2?"}]}',
        "output.value": '{"choices":[{"message":{"role":"assistant","content":"4"}}]}',
    },
    "Vercel": {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.messages": '[{"role":"system","content":"be brief"},{"role":"user","content":"2+2?"}]',
        "ai.response.text": "4",
    },
    "events as an attribute, as Pydantic AI writes": {
        "gen_ai.operation.name": "chat",
        "events": '[{"event.name":"gen_ai.system.message","role":"system","content":"be brief"},'
        '{"event.name":"gen_ai.user.message","role":"user","content":"2+2?"},'
        '{"event.name":"gen_ai.choice","index":0,"message":{"role":"assistant","content":"4"}}]',
    },
}


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("envelope", ["flat", "otlp"])
def test_conventions_and_envelopes_agree(convention: str, envelope: str) -> None:
    attributes = CONVENTIONS[convention]
    (unit,) = spans.units(IDS | {"attributes": otlp(attributes) if envelope == "otlp" else attributes})
    assert unit["messages"] == CHAT
    assert unit["span"]["operation"] == "llm"
    assert (unit["span"]["trace_id"], unit["span"]["span_id"], unit["span"]["parent_id"]) == ("aa", "bb", None)


def test_numbers_of_an_otlp_export_are_numbers() -> None:
    attributes = otlp(CONVENTIONS["current"] | {"gen_ai.request.seed": 7})
    attributes.append({"key": "gen_ai.request.top_p", "value": {"doubleValue": 0.5}})
    (unit,) = spans.units(IDS | {"attributes": attributes})
    assert unit["provenance"] == {"seed": 7, "top_p": 0.5}


def test_events_of_a_span_hold_messages_before_1_37() -> None:
    events = [
        {"name": "gen_ai.system.message", "attributes": {"content": "be brief"}},
        {"name": "gen_ai.user.message", "attributes": {"content": "2+2?", "gen_ai.system": "openai"}},
        {"name": "gen_ai.choice", "attributes": {"index": 0, "message": '{"content":"4"}'}},
    ]
    span = IDS | {"attributes": {"gen_ai.operation.name": "chat"}, "events": events}
    assert spans.units(span)[0]["messages"] == CHAT


def test_tool_calls_and_schemas_of_openinference_are_kept() -> None:
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.0.message.contents.0.message_content.text": "look",
        "llm.input_messages.0.message.contents.1.message_content.type": "image",
        "llm.input_messages.0.message.contents.1.message_content.image.image.url": "http://i",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{}",
        "llm.tools.0.tool.json_schema": '{"name":"f"}',
    }
    nested = {"attributes": unflat(attributes), "context": {"trace_id": "t", "span_id": "s"}}
    for span in (nested, {"attributes": attributes, "context": {"trace_id": "t", "span_id": "s"}}):
        (unit,) = spans.units(span)
        assert unit["messages"] == [
            message("user", "look", content_parts='[{"type":"image","image.image.url":"http://i"}]'),
            message("assistant", None, tool_calls=[{"id": "c", "name": "f", "arguments": "{}"}]),
        ]
        assert unit["tools"] == '[{"name":"f"}]'


def unflat(flat: dict[str, Any]) -> dict[str, Any]:
    """Return dotted keys as nested objects and lists, as Phoenix exports them."""
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        node = tree
        for name in path:
            node = node.setdefault(name, {})
        node[last] = value
    return listed(tree)  # type: ignore[no-any-return]


def listed(node: Any) -> Any:
    """Return objects whose keys are indices as lists."""
    if not isinstance(node, dict):
        return node
    if all(k.isdigit() for k in node):
        return [listed(node[k]) for k in sorted(node, key=int)]
    return {k: listed(v) for k, v in node.items()}


def test_laying_flat_undoes_nesting() -> None:
    flat = {"a.b.0.c": 1, "a.b.1.c": "x", "d": ["plain", "list"], "e.f": None}
    assert flat_attributes({"attributes": unflat(flat)}) == flat
