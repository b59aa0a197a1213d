"""Preference pairs: chosen and rejected, as texts, turns or whole conversations."""

from __future__ import annotations

NAME = "preference"
KINDS = ("synthetic",)
ORDER = 20
IDENTITY = "record"
KEYS = ("chosen", "rejected")
SIDES = (
    ("chosen", "rejected"),
    ("chosen_messages", "rejected_messages"),
    ("chosen_response", "rejected_response"),
    ("response_chosen", "response_rejected"),
)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a pair."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    for chosen, rejected in SIDES:
        if chosen in record and rejected in record:
            readable = all(isinstance(record[key], str | list | dict) for key in (chosen, rejected))
            return None if readable else f"{chosen!r} and {rejected!r} are no texts or turns"
    return "no keys 'chosen' and 'rejected'"
