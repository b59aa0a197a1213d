"""Alpaca rows: instruction, input, output (https://github.com/tatsu-lab/stanford_alpaca); GPTeacher says `response`."""

from __future__ import annotations

from lake.record_keys.chats import ANSWER_KEYS

NAME = "alpaca"
KINDS = ("synthetic",)
ORDER = 40
KEYS = ("instruction", "input", "output")
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be an Alpaca row."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    if not isinstance(record.get("instruction"), str):
        return "no text 'instruction'"
    if not any(isinstance(record.get(key), str) for key in ANSWER_KEYS):
        return "no text 'output' or 'response'"
    return None
