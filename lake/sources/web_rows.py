"""Documents as rows of JSONL, JSON, Parquet or CSV, with a text column."""

from __future__ import annotations

from lake.record_keys.documents import TEXT_KEYS

NAME = "web_rows"
KINDS = ("web",)
ORDER = 70
KEYS = TEXT_KEYS
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a row with a text."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    if any(isinstance(record.get(key), str) for key in TEXT_KEYS):
        return None
    return f"no text under {', '.join(repr(key) for key in TEXT_KEYS)}"
