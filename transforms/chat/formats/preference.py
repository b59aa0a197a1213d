"""Preference pairs: chosen and rejected, as texts, turns, or whole conversations. One record is one pair.

The shapes that occur: texts with a prompt; lists of messages that share their beginning (TRL, UltraFeedback, and
`chosen_messages` of LLaMA-Factory v1); a ShareGPT conversation with one chosen and one rejected turn (LLaMA-Factory).
What both sides begin with is the prompt, message for message; each side keeps at least its last message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lake.record_keys.chats import SIDE_KEYS
from transforms.chat.blocks import Message, UnreadableShape, message
from transforms.chat.calls import tools_text
from transforms.chat.formats.alpaca import asked
from transforms.chat.formats.sharegpt import sharegpt_turn
from transforms.chat.row_facts import history_messages, row_facts, system_message
from transforms.chat.units import Unit, unit

CONVERSATIONS = ("conversations", "messages", "conversation", "prompt", "context")
QUESTIONS = ("prompt", "question", "query", "instruction", "input")


def units(record: object) -> list[Unit]:
    """Read one pair.

    Raises:
        UnreadableShape: it is no such pair.
    """
    if not isinstance(record, dict):
        raise UnreadableShape("no object")
    keys = next((keys for keys in SIDE_KEYS if all(key in record for key in keys)), None)
    if keys is None:
        raise UnreadableShape("no keys 'chosen' and 'rejected'")
    chosen, rejected = (_side(record[key], key) for key in keys)
    return [pair(record, _asked_turns(record), chosen, rejected)]


def pair(record: Mapping[str, Any], prompt: list[Message], chosen: list[Message], rejected: list[Message]) -> Unit:
    """Build the unit of a pair; the sides may begin with the prompt or with more that they share.

    Args:
        record: the row, for the facts beside the texts.
        prompt: turns that stand apart from the sides; may be empty.
        chosen: the preferred side.
        rejected: the other side.

    Raises:
        UnreadableShape: there is no prompt, neither apart from the sides nor at their beginning.
    """
    shared = 0
    for preferred, other in zip(chosen[:-1], rejected[:-1], strict=False):
        if _with_null_weight(preferred) != _with_null_weight(other):
            break
        shared += 1
    common = chosen[:shared]
    whole = common if _starts_with(common, prompt) else [*prompt, *common]
    if not whole:
        raise UnreadableShape("a pair without a prompt")
    tools = tools_text(record)
    return unit(whole, chosen=chosen[shared:], rejected=rejected[shared:], tools=tools, **row_facts(record))


def _starts_with(common: list[Message], prompt: list[Message]) -> bool:
    """Say whether the sides repeat the prompt, with or without a system turn before it."""
    if not common:
        return False
    bare = [m for m in common if m["role"] != "system"]
    wanted = [_with_null_weight(m) for m in prompt if m["role"] != "system"]
    same_system = len(bare) < len(common) or len(wanted) == len(prompt)
    return same_system and [_with_null_weight(m) for m in bare[: len(wanted)]] == wanted


def _with_null_weight(turn: Message) -> Message:
    """Return a turn as it is compared: its weight, which differs between prompt and answer, is null."""
    return {**turn, "weight": None}


def _side(value: object, key: str) -> list[Message]:
    """Read one side: a text, a turn or a list of turns."""
    if isinstance(value, str):
        return [message("assistant", value)]
    turns = value if isinstance(value, list) else [value]
    if not turns or not all(isinstance(turn, dict) for turn in turns):
        raise UnreadableShape(f"{key} is no text, turn or list of turns")
    return [m for turn in turns for m in sharegpt_turn(turn)]


def _asked_turns(record: Mapping[str, Any]) -> list[Message]:
    """Read the prompt that stands apart from the sides; empty when there is none."""
    turns = next((record[key] for key in CONVERSATIONS if isinstance(record.get(key), list)), None)
    if turns is not None:
        return [*system_message(record), *(m for turn in turns for m in sharegpt_turn(turn))]
    question = next((record[key] for key in QUESTIONS if isinstance(record.get(key), str)), None)
    if question is None:
        return system_message(record)
    text = asked(question, dict(record)) if question is record.get("instruction") else question
    return [*system_message(record), *history_messages(record), message("user", text)]
