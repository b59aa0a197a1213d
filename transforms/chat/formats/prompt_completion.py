"""Prompt and completion, as texts or as lists of messages (TRL, OpenAI's older fine-tuning files). One chat a record.

A completion of the older files ends in `<|endoftext|>`, which framed it for one tokenizer; it is taken off, since the
end of a turn is the template's to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lake.record_keys.chats import COMPLETION_KEYS, PROMPT_KEYS
from transforms.chat.blocks import Message, UnreadableShape, message
from transforms.chat.calls import tools_text
from transforms.chat.row_facts import history_messages, row_facts, system_message
from transforms.chat.turns import all_turns
from transforms.chat.units import Unit, unit

END = "<|endoftext|>"


def units(record: object) -> list[Unit]:
    """Read one row.

    Raises:
        UnreadableShape: it is no such row.
    """
    if not isinstance(record, dict):
        raise UnreadableShape("no object")
    turns = [*_prompt_turns(record), *_completion_turns(record)]
    return [unit(turns, tools=tools_text(record), **row_facts(record))]


def _prompt_turns(record: Mapping[str, Any]) -> list[Message]:
    """Return the turns that ask."""
    prompt = _texts_or_turns(record, PROMPT_KEYS)
    if isinstance(prompt, str):
        return [*system_message(record), *history_messages(record), message("user", prompt)]
    return [*system_message(record), *all_turns(prompt)]


def _completion_turns(record: Mapping[str, Any]) -> list[Message]:
    """Return the turns that answer."""
    completion = _texts_or_turns(record, COMPLETION_KEYS)
    if isinstance(completion, str):
        return [message("assistant", completion.removesuffix(END))]
    return all_turns(completion, "assistant")


def _texts_or_turns(record: Mapping[str, Any], keys: tuple[str, ...]) -> str | list[Any]:
    """Return the first text or list of turns under any of the keys."""
    value = next((record[key] for key in keys if isinstance(record.get(key), str | list) and record[key] != []), None)
    if value is None:
        raise UnreadableShape(f"no text under {', '.join(keys)}")
    return value
