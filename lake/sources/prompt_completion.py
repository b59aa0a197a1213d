"""Prompt and completion, as texts or as lists of messages (TRL, OpenAI's older fine-tuning files)."""

from __future__ import annotations

from lake.record_keys.chats import COMPLETION_KEYS, PROMPT_KEYS

NAME = "prompt_completion"
KINDS = ("synthetic",)
ORDER = 60
KEYS = ("prompt", "completion")
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a prompt with its completion."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    for keys in (PROMPT_KEYS, COMPLETION_KEYS):
        if not any(isinstance(record.get(key), str | list) for key in keys):
            return f"no text or turns under {' or '.join(repr(key) for key in keys)}"
    return None
