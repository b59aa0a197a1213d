"""HH-RLHF: pairs of dialogues as text, turns marked "Human:" and "Assistant:" (https://github.com/anthropics/hh-rlhf)."""

from __future__ import annotations

from lake.record_keys.chats import SPEAKERS

NAME = "hh"
KINDS = ("synthetic",)
ORDER = 15
KEYS = ("chosen", "rejected")
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a pair of dialogues."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    for key in KEYS:
        text = record.get(key)
        if not isinstance(text, str):
            return f"no text {key!r}"
        if not text.lstrip().startswith(tuple(f"{name}:" for name in SPEAKERS)):
            return f"{key!r} does not open with 'Human:'"
    return None
