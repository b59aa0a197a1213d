"""ShareGPT: `{"conversations": [{"from": "human", "value": "..."}], "system": "...", "tools": "..."}`.

LLaMA-Factory's tool turns (`function_call` whose value is the JSON of a call or of a list of calls, `observation`)
become calls and tool messages. Raw exports hold HTML in `value`; it is kept.
"""

from __future__ import annotations

from typing import Any

from lake.record_keys.chats import CONVERSATION_KEYS
from transforms.chat.blocks import Message, UnreadableShape, block_call, json_text, loaded, message
from transforms.chat.formats.openai_chat import chat
from transforms.chat.turns import role_of, turns
from transforms.chat.units import Unit


def units(record: object) -> list[Unit]:
    """Read one conversation.

    Raises:
        UnreadableShape: it is no such conversation.
    """
    if not isinstance(record, dict):
        raise UnreadableShape("no object")
    conversation = next((record[k] for k in CONVERSATION_KEYS if isinstance(record.get(k), list)), None)
    if conversation is None:
        raise UnreadableShape("no list 'conversations'")
    return [chat(record, [m for turn in conversation for m in sharegpt_turn(turn)])]


def sharegpt_turn(turn: object) -> list[Message]:
    """Read one turn: from and value, or a message of another dialect."""
    if not isinstance(turn, dict) or "from" not in turn:
        return turns(turn)
    calls = loaded(turn.get("value")) if turn["from"] == "function_call" else None
    written: list[Any] = calls if isinstance(calls, list) else [calls]
    if calls and all(isinstance(c, dict) and ("name" in c or "function" in c) for c in written):
        return [message("assistant", None, tool_calls=[block_call(c) for c in written])]
    role, value = role_of(turn), turn.get("value")
    if role is None or "value" not in turn:
        return turns(turn)
    weight = turn.get("weight")
    content = value if isinstance(value, str) or value is None else json_text(value)
    return [message(role, content, weight=weight if type(weight) is int and weight in (0, 1) else None)]
