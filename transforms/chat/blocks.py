"""The pieces that messages are built of: texts, reasoning, calls and results, in the blocks of any dialect.

The dialects (OpenAI, Anthropic, Gemini, OpenTelemetry, Vercel, LangChain) give their blocks types that do not collide,
so one table of types serves them all.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from lake.record_keys.chats import ANTHROPIC_CALLS, ANTHROPIC_RESULTS

Message = dict[str, Any]

TEXT = frozenset(
    {"text", "input_text", "output_text", "refusal", "summary_text", "Microsoft.Extensions.AI.TextContent"}
)
THOUGHT = frozenset(
    {"thinking", "reasoning", "reasoning_text", "reasoning_content", "Microsoft.Extensions.AI.TextReasoningContent"}
)
CALLS = ("tool_calls", "toolCalls", "tool_call", "toolInvocations")
CALL = frozenset({*ANTHROPIC_CALLS, "tool-call", "tool_call", "function_call", "custom_tool_call", "function"})
RESULT = frozenset(
    {
        *ANTHROPIC_RESULTS,
        "tool-result",
        "tool_call_response",
        "function_call_output",
        "custom_tool_call_output",
    }
)


class UnreadableShape(ValueError):  # noqa: N818  a verdict on the record, not a fault of ours
    """A record is no chat that we can read; the kernel gives it the problem `unreadable_shape`."""


def json_text(value: object) -> str:
    """Return a value as compact JSON text, keys in the source's order.

    Args:
        value: anything `json.loads` can give. An infinite number (1e999) has no JSON form and becomes null.

    >>> json_text({"city": "Köln"})
    '{"city":"Köln"}'
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"))


def _finite(value: object) -> object:
    """Return a value with null where a number is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return {k: _finite(v) for k, v in value.items()} if isinstance(value, dict) else value


def arguments_text(value: object) -> str | None:
    """Return a call's arguments as JSON text.

    Args:
        value: an object, or the JSON text of one (kept as it stands). Text that is no JSON, which models do write,
            becomes a JSON string of itself, so that the column always parses and nothing is lost.

    >>> arguments_text('{"a": 1}'), arguments_text({"a": 1}), arguments_text('{"a'), arguments_text("")
    ('{"a": 1}', '{"a":1}', '"{\\\\"a"', '{}')
    """
    if value is None:
        return None
    if not isinstance(value, str):
        return json_text(value)
    if not value.strip():
        return "{}"
    return value if loaded(value) is not None or value.strip() == "null" else json_text(value)


def loaded(text: object) -> Any:
    """Return what a JSON text holds; None where it is no JSON text."""
    if not isinstance(text, str):
        return None
    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None


def refuse(constant: str) -> None:
    """Refuse a constant of Python's JSON parser that JSON does not have (RFC 8259): NaN, Infinity.

    Raises:
        ValueError: always.
    """
    raise ValueError(constant)


def message(role: str, content: str | None = None, **fields: Any) -> Message:
    """Build one message; fields that are None are left out.

    Args:
        role: system, user, assistant or tool.
        content: the text, None where there is none.
        fields: `reasoning`, `tool_calls`, `tool_call_id`, `name`, `content_parts`, `weight` of the contract.
    """
    return {"role": role, "content": content, **{k: v for k, v in fields.items() if v is not None}}


def _call(call_id: object, name: object, arguments: object) -> dict[str, str | None]:
    """Build one tool call of an assistant turn."""
    return {"id": scalar_text(call_id), "name": scalar_text(name), "arguments": arguments_text(arguments)}


def scalar_text(value: object) -> str | None:
    """Return a name or id as text: null stays null, a number becomes its JSON."""
    return value if isinstance(value, str) or value is None else json_text(value)


def is_block(value: object) -> bool:
    """Say whether an element of a content list is a block: a text, or an object that a dialect knows."""
    if isinstance(value, str):
        return True
    keys = (
        "text",
        "functionCall",
        "functionResponse",
        "function_call",
        "function_response",
        "inlineData",
        "inline_data",
    )
    return isinstance(value, dict) and (isinstance(value.get("type"), str) or any(k in value for k in keys))


def block_kind(block: Mapping[str, Any]) -> str:
    """Name a block: its type, or what the key of a Gemini part says."""
    kind = block.get("type")
    if isinstance(kind, str):
        return kind
    if block.get("thought") is True:
        return "reasoning"
    gemini = {"functionCall": "tool_call", "function_call": "tool_call"}
    gemini |= {"functionResponse": "tool_result", "function_response": "tool_result", "text": "text"}
    return next((name for key, name in gemini.items() if key in block), "")


def text_of(value: object) -> str | None:
    """Return a tool result's content as one text: text blocks joined by line ends, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict) and value.get("type") in TEXT | {"json", "content"}:
        inner = value.get("text", value.get("value", value.get("content")))
        return text_of(inner) if inner is not None else json_text(value)
    if isinstance(value, list) and value:
        texts = [v if isinstance(v, str) else block_text(v) for v in value]
        if all(t is not None for t in texts):
            return "\n".join(t for t in texts if t is not None)
    return None if value == [] else json_text(value)


def block_text(block: object) -> str | None:
    """Return the text of a text block, else None."""
    if not isinstance(block, dict) or block_kind(block) not in TEXT | THOUGHT:
        return None
    for key in ("text", "content", "thinking", "refusal", "reasoning", "value", "summary"):
        value = block.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, dict) and isinstance(value.get("value"), str):  # OpenAI assistants
            return str(value["value"])
        if isinstance(value, list) and value:
            return text_of(value)
    return None


def joined(texts: list[tuple[str, bool]]) -> str | None:
    """Join text blocks by line ends; blocks with citations are pieces of one sentence and join as they are."""
    if not texts:
        return None
    whole = texts[0][0]
    for (_, cited_before), (text, cited) in itertools.pairwise(texts):
        whole += text if cited or cited_before else "\n" + text
    return whole


def block_call(block: Mapping[str, Any]) -> dict[str, str | None]:
    """Read a call: a block, an element of `tool_calls`, or LLaMA-Factory's JSON text in `value`."""
    written = loaded(block.get("value")) if "name" not in block else None
    block = written if isinstance(written, dict) else block
    inner: Mapping[str, Any] = block
    for key in ("function", "functionCall", "function_call", "custom"):
        if isinstance(block.get(key), dict):
            inner = block[key]
    given = next((inner[k] for k in ("arguments", "args", "input", "parameters") if inner.get(k) is not None), None)
    ident = next(
        (block[k] for k in ("call_id", "toolCallId", "tool_call_id", "id") if block.get(k) is not None), inner.get("id")
    )
    name = next((inner[k] for k in ("name", "toolName", "tool_name") if inner.get(k) is not None), None)
    return _call(ident, name, given)


def field_calls(raw: Mapping[str, Any]) -> Iterator[dict[str, str | None]]:
    """Yield the calls of `tool_calls` and of the older `function_call`."""
    for key in CALLS:
        calls = raw.get(key)
        calls = loaded(calls) if isinstance(calls, str) else calls
        for item in calls if isinstance(calls, list) else [calls]:
            if isinstance(item, dict):
                yield block_call(item)
    if isinstance(raw.get("function_call"), dict):
        yield block_call({"function": raw["function_call"]})


def result_message(block: Mapping[str, Any]) -> Message:
    """Build the tool message of a result block."""
    inner: Mapping[str, Any] = block
    for key in ("functionResponse", "function_response"):
        if isinstance(block.get(key), dict):
            inner = block[key]
    content = next((inner[k] for k in ("content", "output", "result", "response") if inner.get(k) is not None), None)
    keys = ("tool_use_id", "toolCallId", "tool_call_id", "call_id", "id")
    ident = next((inner[k] for k in keys if inner.get(k) is not None), None)
    name = next((inner[k] for k in ("name", "toolName") if isinstance(inner.get(k), str)), None)
    parts = [b for b in content if isinstance(b, dict) and block_text(b) is None] if isinstance(content, list) else []
    if parts and all(is_block(b) for b in content or []):
        texts = [b for b in content or [] if b not in parts]
        return message(
            "tool", text_of(texts), tool_call_id=scalar_text(ident), name=name, content_parts=json_text(parts)
        )
    return message("tool", text_of(content), tool_call_id=scalar_text(ident), name=name)
