"""Turns of any dialect to the common chat message, one reader for all of them.

The dialects (OpenAI chat and responses, Anthropic blocks, Gemini parts, OpenTelemetry GenAI parts, Vercel AI SDK,
LangChain, ShareGPT) give their blocks types that do not collide, so one table of block types reads them all, mixed
ones too, and a format needs to say only where its messages lie. Order is kept: a tool result inside an assistant turn
splits the turn. Nothing is dropped: a block of no known type goes to `content_parts` as it is.

Absent stays absent: a key is set only where the source has it, `tool_calls` is never empty, text is never invented.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lake.record_keys.chats import ENVELOPE_KEYS, ROLE_KEYS, ROLES
from transforms.chat.blocks import (
    CALL,
    CALLS,
    RESULT,
    TEXT,
    THOUGHT,
    Message,
    UnreadableShape,
    block_call,
    block_kind,
    block_text,
    field_calls,
    is_block,
    joined,
    json_text,
    message,
    result_message,
    scalar_text,
    text_of,
)

CONTENT_KEYS = frozenset(
    {"content", "parts", "value", "text", "tool_calls", "function_call", "reasoning_content", "refusal", "audio"}
)
"""Keys by which a turn that names no role says something."""
REASONING_KEYS = ("reasoning_content", "reasoning", "thinking", "thought")
ASIDE_KEYS = frozenset({*REASONING_KEYS, *CALLS, "function_call", "additional_kwargs", "refusal", "audio", "images"})
"""Keys beside the content that say something; most turns have none."""


def role_of(raw: Mapping[str, Any]) -> str | None:
    """Return a turn's role in the common vocabulary, or None where it names none of ours."""
    for key in ROLE_KEYS:
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


def all_turns(raws: object, default_role: str | None = None) -> list[Message]:
    """Read a list of turns; each gives at least one message, or its share of one.

    Items of the Responses API (reasoning, calls, an assistant's message) that follow each other are one turn. A role
    that is the name of a tool called before (LangGraph through Langfuse) is that tool's answer.

    Args:
        raws: a list of turns, one turn, or a text.
        default_role: role of turns that name none, such as an output that is bare text.

    Raises:
        UnreadableShape: an element is no turn.
    """
    items = raws if isinstance(raws, list) else [raws]
    if items and all(isinstance(i, list) for i in items):  # LangChain nests one list a candidate
        items = [turn for inner in items for turn in inner]
    messages: list[Message] = []
    pending: list[Any] = []
    for item in items:
        if (shares := _item_blocks(item)) is not None:
            pending += shares
            continue
        messages += Splitter("assistant", {}).walk(pending) if pending else []
        pending = []
        messages += turns(_as_tool_answer(item, messages), default_role)
    return [*messages, *(Splitter("assistant", {}).walk(pending) if pending else [])]


def _item_blocks(item: object) -> list[Any] | None:
    """Return the blocks that an item of the Responses API adds to an assistant's turn; None for any other turn."""
    if not isinstance(item, dict):
        return None
    kind = item.get("type")
    if isinstance(kind, str) and kind in CALL | THOUGHT and "role" not in item:
        return [item]
    return _blocks(item) if kind == "message" and item.get("role") == "assistant" and "status" in item else None


def _as_tool_answer(item: object, before: list[Message]) -> object:
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
    raw = _unwrapped(raw)
    kind = raw.get("type")
    if isinstance(kind, str) and (kind in RESULT or (kind in CALL | THOUGHT and "role" not in raw)):
        return list(Splitter("assistant", {}).walk([raw]))
    role = role_of(raw)
    if role is None and default_role and "role" not in raw and CONTENT_KEYS & raw.keys():
        role = default_role
    if role is None:
        raise UnreadableShape(f"role {raw.get('role', raw.get('from'))!r}")
    return list(Splitter(role, raw).walk(_blocks(raw)))


def _unwrapped(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the message inside an envelope such as `{"message": {...}}`, which may know its role."""
    for key in ENVELOPE_KEYS:
        inner = raw.get(key)
        if isinstance(inner, dict) and "content" not in raw and "parts" not in raw:
            role = role_of(inner) or role_of(raw)
            return {**inner, "role": role} if role else inner
    return raw


def _blocks(raw: Mapping[str, Any]) -> list[Any]:
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


class Splitter:
    """Gathers the blocks of one turn into messages, in order.

    A class because what is gathered of a turn (texts, thoughts, calls, parts) fills as its blocks are walked; `walk`
    empties it at each tool result.
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
        if ASIDE_KEYS.isdisjoint(raw):
            return
        extra = raw.get("additional_kwargs")
        if not self.calls:
            self.calls = [*field_calls(raw)] or [*field_calls(extra if isinstance(extra, dict) else {})]
        for key in REASONING_KEYS:
            value = raw.get(key)
            if not self.thoughts and isinstance(value, str | list | dict) and (text := text_of(value)):
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
        raw, weight = self.raw, self.raw.get("weight", self.raw.get("loss_weight"))
        tool_id = raw.get("tool_call_id", raw.get("toolCallId", raw.get("call_id"))) if self.role == "tool" else None
        name = raw.get("name", raw.get("tool_name", raw.get("toolName") if self.role == "tool" else None))
        gathered = message(
            "assistant" if self.calls and self.role == "tool" else self.role,  # Koog: calls under the role tool
            joined(self.texts),
            reasoning="\n".join(self.thoughts) if self.thoughts else None,
            tool_calls=self.calls or None,
            tool_call_id=scalar_text(tool_id),
            name=name if isinstance(name, str) and name else None,
            content_parts=json_text(self.parts) if self.parts else None,
            weight=int(weight) if weight in (0, 1) and isinstance(weight, int | float) else None,
        )
        self.texts, self.thoughts, self.calls, self.parts = [], [], [], []
        return gathered
