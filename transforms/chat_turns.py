"""Turns of any dialect to the common chat message, one reader for all of them.

The dialects (OpenAI chat and responses, Anthropic blocks, Gemini parts, OpenTelemetry GenAI parts, Vercel AI SDK, LangChain,
ShareGPT) give their blocks types that do not collide, so one table of block types reads them all, mixed ones too, and a
format needs to say only where its messages lie. Order is kept: a tool result inside an assistant turn splits the turn.
Nothing is dropped: a block of no known type goes to `content_parts` as it is.

Absent stays absent: a key is set only where the source has it, `tool_calls` is never empty, text is never invented.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Message = dict[str, Any]

ROLES: Mapping[str, str] = {
    **dict.fromkeys(("system", "developer", "systemmessage", "systemprompt"), "system"),
    **dict.fromkeys(("user", "human", "prompter", "customer", "humanmessage", "usermessage"), "user"),
    **dict.fromkeys(("assistant", "gpt", "ai", "bot", "model", "agent", "chatbot", "aimessage", "assistantmessage"), "assistant"),
    **dict.fromkeys(("chatgpt", "bing", "bard", "claude", "function_call", "aimessagechunk", "function-call"), "assistant"),
    **dict.fromkeys(("tool", "function", "observation", "ipython", "tool_response", "toolmessage", "functionmessage"), "tool"),
    **dict.fromkeys(("function_response", "tool_result", "tool_results", "environment"), "tool"),
}
"""What the dialects call the four roles, lower case."""

TEXT = frozenset({"text", "input_text", "output_text", "refusal", "summary_text", "str"})
THOUGHT = frozenset({"thinking", "reasoning", "reasoning_text", "reasoning_content"})
CALL = frozenset(
    {"tool_use", "server_tool_use", "mcp_tool_use", "tool-call", "tool_call", "function_call", "custom_tool_call", "function"}
)
RESULT = frozenset(
    {
        "tool_result",
        "tool-result",
        "tool_call_response",
        "function_call_output",
        "custom_tool_call_output",
        "mcp_tool_result",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
    }
)
SAYS = frozenset({"content", "parts", "value", "text", "tool_calls", "function_call", "reasoning_content", "refusal", "audio"})
"""Keys by which a turn that names no role says something."""
WRAPPED = ("message", "kwargs", "data")
"""Keys under which LangChain, AutoGen and exports keep the message itself."""


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
        return json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"))


def finite(value: object) -> object:
    """Return a value with null where a number is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [finite(v) for v in value]
    return {k: finite(v) for k, v in value.items()} if isinstance(value, dict) else value


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
    """Refuse NaN and Infinity, which Python's parser would take and no other does."""
    raise ValueError(constant)


def role_of(raw: Mapping[str, Any]) -> str | None:
    """Return a turn's role in the common vocabulary, or None where it names none of ours."""
    for key in ("role", "from", "type", "speaker", "author"):
        name = raw.get(key)
        if key != "role" and isinstance(raw.get("role"), str):
            break  # a role of its own, unknown to us, is never overruled
        if isinstance(name, dict):
            name = name.get("role")
        if isinstance(name, str) and (role := ROLES.get(name.strip().lower())):
            return role
    kinds = raw.get("id")
    if raw.get("lc") == 1 and isinstance(kinds, list) and kinds and isinstance(kinds[-1], str):
        return ROLES.get(kinds[-1].lower())
    return None


def message(role: str, content: str | None = None, **fields: Any) -> Message:
    """Build one message; fields that are None are left out.

    Args:
        role: system, user, assistant or tool.
        content: the text, None where there is none.
        fields: `reasoning`, `tool_calls`, `tool_call_id`, `name`, `content_parts`, `weight` of the contract.
    """
    return {"role": role, "content": content, **{k: v for k, v in fields.items() if v is not None}}


def call(call_id: object, name: object, arguments: object) -> dict[str, str | None]:
    """Build one tool call of an assistant turn."""
    return {"id": scalar_text(call_id), "name": scalar_text(name), "arguments": arguments_text(arguments)}


def scalar_text(value: object) -> str | None:
    """Return a name or id as text: null stays null, a number becomes its JSON."""
    return value if isinstance(value, str) or value is None else json_text(value)


def all_turns(raws: object, default_role: str | None = None) -> list[Message]:
    """Read a list of turns; each gives at least one message, or its share of one.

    Items of the Responses API (reasoning, calls, an assistant's message) that follow each other are one turn. A role that is
    the name of a tool called before (LangGraph through Langfuse) is that tool's answer.

    Args:
        raws: a list of turns, one turn, or a text.
        default_role: role of turns that name none, such as an output that is bare text.

    Raises:
        UnreadableShape: an element is no turn.
    """
    items = raws if isinstance(raws, list) else [raws]
    if items and all(isinstance(i, list) for i in items):  # LangChain nests one list a candidate
        items = [turn for inner in items for turn in inner]
    done: list[Message] = []
    pending: list[Any] = []
    for item in items:
        if (shares := item_blocks(item)) is not None:
            pending += shares
            continue
        done += Splitter("assistant", {}).walk(pending) if pending else []
        pending = []
        done += turns(as_tool_answer(item, done), default_role)
    return [*done, *(Splitter("assistant", {}).walk(pending) if pending else [])]


def item_blocks(item: object) -> list[Any] | None:
    """Return the blocks that an item of the Responses API adds to an assistant's turn; None for any other turn."""
    if not isinstance(item, dict):
        return None
    kind = item.get("type")
    if isinstance(kind, str) and kind in CALL | THOUGHT and "role" not in item:
        return [item]
    return blocks(item) if kind == "message" and item.get("role") == "assistant" and "status" in item else None


def as_tool_answer(item: object, before: list[Message]) -> object:
    """Return a turn whose role is the name of a tool that was called as that tool's answer; any other as it is."""
    if not isinstance(item, dict) or not isinstance(item.get("role"), str) or role_of(item) is not None:
        return item
    called = {c["name"] for m in before for c in m.get("tool_calls") or []}
    return {**item, "role": "tool", "name": item["role"]} if item["role"] in called else item


def turns(raw: object, default_role: str | None = None) -> list[Message]:
    """Read one turn of any dialect.

    Args:
        raw: the turn: an object with a role, an item of the Responses API, or a text.
        default_role: its role where it names none.

    Returns:
        One message, or several where the turn holds tool results beside text.

    Raises:
        UnreadableShape: it is no turn, or its role is none that we know.
    """
    if isinstance(raw, str) and default_role:
        return [message(default_role, raw)]
    if not isinstance(raw, dict):
        raise UnreadableShape(f"a turn is {type(raw).__name__}")
    raw = unwrapped(raw)
    kind = raw.get("type")
    if isinstance(kind, str) and (kind in RESULT or (kind in CALL | THOUGHT and "role" not in raw)):
        return list(Splitter("assistant", {}).walk([raw]))
    role = role_of(raw)
    if role is None and default_role and "role" not in raw and SAYS & raw.keys():
        role = default_role
    if role is None:
        raise UnreadableShape(f"role {raw.get('role', raw.get('from'))!r}")
    return list(Splitter(role, raw).walk(blocks(raw)))


def unwrapped(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the message inside an envelope such as `{"message": {...}}`; the envelope's role serves where it has none."""
    for key in WRAPPED:
        inner = raw.get(key)
        if isinstance(inner, dict) and "content" not in raw and "parts" not in raw:
            role = role_of(inner) or role_of(raw)
            return {**inner, "role": role} if role else inner
    return raw


def blocks(raw: Mapping[str, Any]) -> list[Any]:
    """Return a turn's content as a list of blocks; texts stand for text blocks."""
    for key in ("content", "parts", "value", "text"):
        value = raw.get(key)
        if value is None:
            continue
        if isinstance(value, list):
            return value if all(is_block(v) for v in value) else [json_text(value)]
        if isinstance(value, dict) and not is_block(value):
            nested = value.get("parts")
            return nested if isinstance(nested, list) else [json_text(value)]
        return [value] if isinstance(value, str | dict) else [json_text(value)]
    return []


def is_block(value: object) -> bool:
    """Say whether an element of a content list is a block: a text, or an object that a dialect knows."""
    if isinstance(value, str):
        return True
    keys = ("text", "functionCall", "functionResponse", "function_call", "function_response", "inlineData", "inline_data")
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


class Splitter:
    """Gathers the blocks of one turn into messages, in order.

    A class because a turn has seven slots that fill as its blocks are walked; `walk` empties them at each tool result.
    """

    def __init__(self, role: str, raw: Mapping[str, Any]) -> None:
        """Start a turn.

        Args:
            role: its role in the common vocabulary.
            raw: the turn, for the fields beside its content.
        """
        self.role = role
        self.raw = raw
        self.texts: list[tuple[str, bool]] = []
        self.thoughts: list[str] = []
        self.calls: list[dict[str, str | None]] = []
        self.parts: list[Any] = []

    def walk(self, items: Iterable[Any]) -> Iterator[Message]:
        """Yield the messages of a turn's blocks, at least one."""
        given = 0
        for block in items:
            if isinstance(block, dict) and self.is_result(block):
                if self.holds_something():
                    yield self.flush()
                yield result_message(block)
                given += 1
            else:
                self.take(block)
        self.take_fields()
        if self.holds_something() or not given:
            yield self.flush()

    def is_result(self, block: Mapping[str, Any]) -> bool:
        """Say whether a block is a tool's answer."""
        kind = block_kind(block)
        return kind in RESULT or (kind.startswith("tool-") and "output" in block and "toolCallId" in block)

    def holds_something(self) -> bool:
        """Say whether blocks have come since the last message."""
        return bool(self.texts or self.thoughts or self.calls or self.parts)

    def take(self, block: object) -> None:
        """Sort one block into its slot."""
        if isinstance(block, str):
            self.texts.append((block, False))
            return
        if not isinstance(block, dict):
            self.texts.append((json_text(block), False))
            return
        kind, text = block_kind(block), block_text(block)
        if kind in THOUGHT and text is not None:
            if text:
                self.thoughts.append(text)
        elif kind in TEXT and text is not None:
            self.texts.append((text, bool(block.get("citations") or block.get("annotations"))))
        elif kind in CALL:
            self.calls.append(block_call(block))
        elif kind in THOUGHT and not block.get("encrypted_content"):
            pass  # an item of the Responses API whose summary is empty says nothing
        else:
            self.parts.append(block)

    def take_fields(self) -> None:
        """Take what dialects keep beside the content: calls, reasoning, refusal, audio."""
        raw = self.raw
        extra = raw.get("additional_kwargs")
        extra = extra if isinstance(extra, dict) else {}
        if not self.calls:
            self.calls = list(field_calls(raw) or field_calls(extra))
        for key in ("reasoning_content", "reasoning", "thinking", "thought"):
            value = raw.get(key)
            if not self.thoughts and value and (text := text_of(value)):
                self.thoughts.append(text)
        if not self.texts and isinstance(raw.get("refusal"), str):
            self.texts.append((raw["refusal"], False))
        audio = raw.get("audio")
        if isinstance(audio, dict):
            self.parts.append({"type": "audio", "audio": audio})
            if not self.texts and isinstance(audio.get("transcript"), str):
                self.texts.append((audio["transcript"], False))
        images = raw.get("images")
        if isinstance(images, list):
            self.parts.extend({"type": "image", "image": image} for image in images)

    def flush(self) -> Message:
        """Return the message gathered so far and start the next."""
        raw, weight = self.raw, self.raw.get("weight")
        tool_id = raw.get("tool_call_id", raw.get("toolCallId", raw.get("call_id"))) if self.role == "tool" else None
        name = raw.get("name", raw.get("tool_name", raw.get("toolName") if self.role == "tool" else None))
        done = message(
            self.role,
            joined(self.texts),
            reasoning="\n".join(self.thoughts) if self.thoughts else None,
            tool_calls=self.calls or None,
            tool_call_id=scalar_text(tool_id),
            name=name if isinstance(name, str) and name else None,
            content_parts=json_text(self.parts) if self.parts else None,
            weight=int(weight) if weight in (0, 1) and isinstance(weight, int | float) else None,
        )
        self.texts, self.thoughts, self.calls, self.parts = [], [], [], []
        return done


def joined(texts: list[tuple[str, bool]]) -> str | None:
    """Join text blocks by line ends; blocks that carry citations are pieces of one sentence and join as they are."""
    if not texts:
        return None
    whole = texts[0][0]
    for (_, cited_before), (text, cited) in zip(texts, texts[1:], strict=False):
        whole += text if cited or cited_before else "\n" + text
    return whole


def block_call(block: Mapping[str, Any]) -> dict[str, str | None]:
    """Read a tool call from a block or from an element of `tool_calls`."""
    inner: Mapping[str, Any] = block
    for key in ("function", "functionCall", "function_call", "custom"):
        if isinstance(block.get(key), dict):
            inner = block[key]
    given = next((inner[k] for k in ("arguments", "args", "input", "parameters") if inner.get(k) is not None), None)
    ident = next((block[k] for k in ("call_id", "toolCallId", "tool_call_id", "id") if block.get(k) is not None), inner.get("id"))
    name = next((inner[k] for k in ("name", "toolName", "tool_name") if inner.get(k) is not None), None)
    return call(ident, name, given)


def field_calls(raw: Mapping[str, Any]) -> Iterator[dict[str, str | None]]:
    """Yield the calls of `tool_calls` and of the older `function_call`."""
    for key in ("tool_calls", "toolCalls", "tool_call", "toolInvocations"):
        found = loaded(raw.get(key)) if isinstance(raw.get(key), str) else raw.get(key)
        for item in found if isinstance(found, list) else [found]:
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
        return message("tool", text_of(texts), tool_call_id=scalar_text(ident), name=name, content_parts=json_text(parts))
    return message("tool", text_of(content), tool_call_id=scalar_text(ident), name=name)
