"""Answers as one JSON object, keyed by the ids of items that stand in another file: PubMedQA's test ground truth."""

from __future__ import annotations

NAME = "answers_by_key"
KINDS = ("benchmark",)
ORDER = 70
KEYS = ()
ITEMS = ("*",)


def lacks(record: object) -> str | None:
    """Say what a member of the object lacks to be an answer."""
    if not isinstance(record, dict) or len(record) != 1:
        return "the file is no JSON object of answers"
    key, value = next(iter(record.items()))
    if not any(c.isdigit() for c in key):
        return f"{key!r} is no id of an item"
    return None if isinstance(value, str | int | float) else "a member is no answer"
