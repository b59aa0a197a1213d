"""OpenAI chat messages: `{"messages": [...]}`, with tools where there are some. One record is one chat.

Turns may be of any dialect (`transforms.chat_turns`): Anthropic blocks under `messages` are common.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transforms.chat_turns import Message, UnreadableShape, all_turns, json_text, loaded, message, text_of
from transforms.chat_units import Unit, outcome, provenance, time, unit


def units(record: object) -> list[Unit]:
    """Read one chat."""
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
        raise UnreadableShape("no list 'messages'")
    return [chat(record, record["messages"])]


def chat(record: Mapping[str, Any], messages: list[Any], more: list[Message] | None = None) -> Unit:
    """Build the unit of a request-like object: system prompt, messages, tools, facts.

    Args:
        record: the object that holds `system`, `tools`, `model` and the like.
        messages: its turns.
        more: turns that follow them, already read.
    """
    turns = [*system_turns(record), *all_turns(messages), *(more or [])]
    if not turns:
        raise UnreadableShape("no turn")
    return unit(
        turns,
        tools=tools_text(record),
        created_at=created(record),
        outcome=outcome(record.get("reward"), record.get("feedback"), record.get("verdict")),
        provenance=request_provenance(record),
    )


def system_turns(record: Mapping[str, Any]) -> list[Message]:
    """Return the system prompt that stands beside the messages, as Anthropic, Gemini and OpenAI responses write it."""
    for key in ("system", "system_prompt", "instructions", "system_instruction", "systemInstruction"):
        text = text_of(record.get(key)) if not isinstance(record.get(key), dict) else text_of(record[key].get("parts"))
        if text:
            return [message("system", text)]
    return []


def tools_text(record: Mapping[str, Any]) -> str | None:
    """Return the tool schemas as JSON text; null where there are none."""
    for key in ("tools", "functions"):
        value = record.get(key)
        value = loaded(value) if isinstance(value, str) else value
        if isinstance(value, list | dict) and value:
            return json_text(value)
    return None


def created(record: Mapping[str, Any]) -> Any:
    """Return the time written in a record."""
    for key in ("created", "created_at", "createdAt", "timestamp", "create_time"):
        if (found := time(record.get(key))) is not None:
            return found
    return None


def request_provenance(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a request or row says about how its answer was made."""
    return provenance(
        generator_model=record.get("model") if isinstance(record.get("model"), str) else None,
        **{k: record.get(k) for k in ("temperature", "top_p", "seed")},
    )
