"""Preference pairs: chosen and rejected, as texts, turns or whole conversations."""

from __future__ import annotations

from lake.record_keys.chats import SIDE_KEYS

NAME = "preference"
KINDS = ("synthetic",)
ORDER = 20
KEYS = ("chosen", "rejected")
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a pair."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    for chosen, rejected in SIDE_KEYS:
        if chosen in record and rejected in record:
            readable = all(isinstance(record[key], str | list | dict) for key in (chosen, rejected))
            return None if readable else f"{chosen!r} and {rejected!r} are no texts or turns"
    return "no keys 'chosen' and 'rejected'"
