"""Benchmark items as one JSON object, keyed by their ids: PubMedQA (https://github.com/pubmedqa/pubmedqa)."""

from __future__ import annotations

from lake.sources.question_answer import lacks as row_lacks

NAME = "keyed_questions"
KINDS = ("benchmark",)
ORDER = 50
KEYS = ()
ITEMS = ("*",)


def lacks(record: object) -> str | None:
    """Say what a member of the object lacks to be an item."""
    if not isinstance(record, dict) or len(record) != 1:
        return "the file is no JSON object of items"
    return row_lacks(next(iter(record.values())))
