"""Spans of model calls: OpenTelemetry GenAI (current, deprecated, events), OpenInference, OpenLLMetry, Vercel AI SDK.

Attributes come flat (`llm.input_messages.0.message.role`), nested (Phoenix exports) or as OTLP key-value lists; they
are laid flat first. Of the conventions that a span follows the first that holds messages counts, in this order:
OpenInference messages, `gen_ai.input.messages`, indexed `gen_ai.prompt.N`, `gen_ai.prompt`, events, `ai.prompt`,
`input.value`. OpenTelemetry semantic conventions for generative AI 1.37; OpenInference specification of 2025.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transforms.chat.blocks import Message, UnreadableShape, json_text
from transforms.chat.calls import answers, given, parsed, system_turns, tools_text
from transforms.chat.formats.openai_chat import sampled
from transforms.chat.formats.span_fields import flat_attributes, rows, span_events, span_ids
from transforms.chat.turns import all_turns
from transforms.chat.units import NO_CHAT, Unit, in_trace, unit

Attributes = Mapping[str, Any]
Read = tuple[list[Message], list[Message]]

LLM_OPERATIONS = ("chat", "text_completion", "generate_content", "completion")
VERCEL = re.compile(r"ai\.(generate|stream)(Text|Object)")


def units(record: object) -> list[Unit]:
    """Read one span, or bare attributes of one.

    Raises:
        UnreadableShape: it is no object, or a turn in it is none.
    """
    if not isinstance(record, dict):
        raise UnreadableShape("no object")
    attributes = flat_attributes(record)
    operation = _operation_of(attributes)
    span = {**span_ids(record), "operation": operation}
    if operation == "other":
        return [in_trace(unit(None, problem=NO_CHAT), span)]
    asked, answered = _call_of(attributes, span_events(record))
    turns = [*asked, *answered]
    if not turns:
        return [in_trace(unit(None, problem=NO_CHAT), span)]
    call = unit(turns, tools=_span_tools(attributes), created_at=span["started_at"], provenance=_span_model(attributes))
    return [in_trace(call, span)]


def _operation_of(attributes: Attributes) -> str:
    """Say what a span did: `llm`, `agent` or `other`."""
    kind = attributes.get("openinference.span.kind", attributes.get("traceloop.span.kind"))
    name, vercel = attributes.get("gen_ai.operation.name"), attributes.get("ai.operationId")
    if kind is not None:
        return {"llm": "llm", "agent": "agent"}.get(str(kind).lower(), "other")
    if isinstance(vercel, str):
        return "llm" if VERCEL.match(vercel) else "other"
    if name is not None:
        return "llm" if name in LLM_OPERATIONS else "agent" if name in ("invoke_agent", "create_agent") else "other"
    has_messages = any(
        k.startswith(("gen_ai.prompt", "gen_ai.input.messages", "llm.input_messages", "llm.prompts"))
        for k in attributes
    )
    return "llm" if has_messages or attributes.get("llm.request.type") in LLM_OPERATIONS else "other"


def _call_of(attributes: Attributes, events: Sequence[tuple[str, Attributes]]) -> Read:
    """Return what a span's model was given and what it answered, by the first convention that says anything."""
    readers: tuple[Callable[[], Read], ...] = (
        lambda: _openinference(attributes),
        lambda: _gen_ai_messages(attributes),
        lambda: _indexed(attributes),
        lambda: _gen_ai_texts(attributes),
        lambda: _from_events(events),
        lambda: _vercel(attributes),
        lambda: (given(attributes.get("input.value")), _first_answer(attributes.get("output.value"))),
    )
    best: Read = ([], [])
    for read in readers:
        try:
            asked, answered = read()
        except UnreadableShape:
            continue  # the span may say it again by another convention
        best = (best[0] or asked, best[1] or answered)
        if best[0] and best[1]:
            break
    return best


def _first_answer(value: object) -> list[Message]:
    """Return the messages of an answer; of several choices all, since a span has one conversation."""
    return [m for answer in answers(value) for m in answer]


def _openinference(attributes: Attributes) -> Read:
    """Read `llm.input_messages` and `llm.output_messages`."""
    asked = [t for row in rows(attributes, "llm.input_messages") for t in all_turns(_openinference_turn(row))]
    answered = [t for row in rows(attributes, "llm.output_messages") for t in all_turns(_openinference_turn(row))]
    return asked, answered


def _openinference_turn(row: Attributes) -> dict[str, Any]:
    """Turn the attributes of one message into a turn of the usual dialect."""
    turn = {k.removeprefix("message."): v for k, v in row.items() if k.count(".") == 1}
    parts = [{k.removeprefix("message_content."): v for k, v in part.items()} for part in rows(row, "message.contents")]
    calls = [call.get("tool_call.function.name") is not None and call for call in rows(row, "message.tool_calls")]
    if parts:
        turn["content"] = [_part_block(p) for p in parts]
    turn["tool_calls"] = [
        {
            "id": c.get("tool_call.id"),
            "function": {
                "name": c.get("tool_call.function.name"),
                "arguments": c.get("tool_call.function.arguments"),
            },
        }
        for c in calls
        if c
    ]
    if "function_call_name" in turn:
        turn["function_call"] = {
            "name": turn.pop("function_call_name"),
            "arguments": turn.pop("function_call_arguments_json", None),
        }
    return turn


def _part_block(part: Attributes) -> dict[str, Any]:
    """Return a content part as a block; an image's address lies deeper."""
    if isinstance(part.get("text"), str) and part.get("type", "text") == "text":
        return {"type": "text", "text": part["text"]}
    return {"type": str(part.get("type", "part")), **part}


def _gen_ai_messages(attributes: Attributes) -> Read:
    """Read `gen_ai.system_instructions`, `gen_ai.input.messages` and `gen_ai.output.messages`."""
    system = attributes.get("gen_ai.system_instructions")
    asked = given(attributes.get("gen_ai.input.messages"))
    if system and not (asked and asked[0]["role"] == "system"):
        asked = [*system_turns({"system": _instructions(parsed(system))}), *asked]
    return asked, _first_answer(attributes.get("gen_ai.output.messages"))


def _instructions(value: object) -> object:
    """Return system instructions, a list of parts, as texts."""
    if not isinstance(value, list):
        return value
    return [p.get("content", p.get("text")) if isinstance(p, dict) else p for p in value]


def _indexed(attributes: Attributes) -> Read:
    """Read OpenLLMetry's `gen_ai.prompt.0.role` and its kin."""
    sides = []
    for names in (("gen_ai.prompt", "llm.prompts"), ("gen_ai.completion", "llm.completions")):
        turns = [_indexed_turn(row) for name in names for row in rows(attributes, name)]
        sides.append([m for t in turns for m in all_turns(t, "assistant" if names[0].endswith("completion") else None)])
    return sides[0], sides[1]


def _indexed_turn(row: Attributes) -> dict[str, Any]:
    """Turn the attributes of one prompt or completion into a turn; content may be the JSON of parts."""
    calls = [dict(c) for c in rows(row, "tool_calls")]
    turn = {k: v for k, v in row.items() if "." not in k}
    content = parsed(turn.get("content"))
    if isinstance(content, list) and content and all(isinstance(p, dict) and "type" in p for p in content):
        turn["content"] = content if "function" not in content[0] else turn["content"]
    return {**turn, **({"tool_calls": calls} if calls else {})}


def _gen_ai_texts(attributes: Attributes) -> Read:
    """Read the deprecated `gen_ai.prompt` and `gen_ai.completion`, JSON or text."""
    return given(attributes.get("gen_ai.prompt")), _first_answer(attributes.get("gen_ai.completion"))


def _from_events(events: Sequence[tuple[str, Attributes]]) -> Read:
    """Read the messages that the conventions before 1.37 keep in events, and the one event of those since."""
    asked: list[Message] = []
    answered: list[Message] = []
    for name, fields in events:
        if name == "gen_ai.choice":
            answered += all_turns(parsed(fields.get("message", fields)), "assistant")
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            role = name.removeprefix("gen_ai.").removesuffix(".message")
            turn = {k: parsed(v) if k == "tool_calls" else v for k, v in fields.items() if not k.startswith("gen_ai.")}
            asked += all_turns(
                {"role": role, **turn, **({"tool_call_id": turn["id"]} if role == "tool" and "id" in turn else {})}
            )
        elif name in (
            "gen_ai.content.prompt",
            "gen_ai.content.completion",
            "gen_ai.client.inference.operation.details",
        ):
            more = [read(fields) for read in (_gen_ai_messages, _gen_ai_texts)]
            asked += [m for side, _ in more for m in side]
            answered += [m for _, side in more for m in side]
    return asked, answered


def _vercel(attributes: Attributes) -> Read:
    """Read the Vercel AI SDK's `ai.prompt.messages` or `ai.prompt`, and its response."""
    asked = given(attributes.get("ai.prompt.messages") or attributes.get("ai.prompt"))
    text = attributes.get("ai.response.text")
    turn = {
        "role": "assistant",
        "content": text if isinstance(text, str) else attributes.get("ai.response.object"),
        "reasoning": attributes.get("ai.response.reasoning"),
        "tool_calls": parsed(attributes.get("ai.response.toolCalls")),
    }
    answer = {k: v for k, v in turn.items() if v is not None}
    return asked, all_turns(answer) if len(answer) > 1 else []


def _span_tools(attributes: Attributes) -> str | None:
    """Return the tool schemas that a span names."""
    for key in ("gen_ai.tool.definitions", "gen_ai.request.tools", "ai.prompt.tools"):
        if text := tools_text({"tools": attributes.get(key)}):
            return text
    named = [row.get("tool.json_schema", row.get("json_schema")) for row in rows(attributes, "llm.tools")]
    if schemas := [parsed(t) for t in named if t is not None]:
        return json_text(schemas)
    functions = [dict(row) for row in rows(attributes, "llm.request.functions")]
    if functions:
        return json_text([{**f, "parameters": parsed(f.get("parameters"))} for f in functions])
    return tools_text(attributes.get("llm.invocation_parameters"), attributes.get("input.value"))


def _span_model(attributes: Attributes) -> dict[str, Any] | None:
    """Return model and sampling parameters."""
    models = ("gen_ai.response.model", "llm.model_name", "ai.response.model", "gen_ai.request.model", "ai.model.id")
    model = next((attributes[k] for k in models if isinstance(attributes.get(k), str)), None)
    sampling = {k: attributes.get(f"gen_ai.request.{k}") for k in ("temperature", "top_p", "seed")}
    return sampled({"model": model, **sampling}, parsed(attributes.get("llm.invocation_parameters")))
