"""Answers as rows, with the ids of items that stand in another file: BFCL's possible_answer."""

from __future__ import annotations

from lake.record_keys.items import GROUND_TRUTH_KEYS
from lake.sources.question_answer import lacks as row_lacks

NAME = "answers_by_id"
KINDS = ("benchmark",)
ORDER = 65
KEYS = ("id", "ground_truth")
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be an answer."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    if row_lacks(record) is None:
        return "it holds its question"
    if not isinstance(record.get("id"), str | int):
        return "no key 'id'"
    return None if any(key in record for key in GROUND_TRUTH_KEYS) else "no key 'ground_truth' or 'answer'"
