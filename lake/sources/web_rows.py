"""Documents as rows of JSONL, JSON, Parquet or CSV, with a text column."""

from __future__ import annotations

NAME = "web_rows"
KINDS = ("web",)
ORDER = 70
IDENTITY = "record"
# As in transforms.document_text, which reads the first of these that holds a text.
KEYS = (
    "text", "content", "raw_content", "page_content", "document", "body", "markdown", "article", "passage", "contents",
)  # fmt: skip


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a row with a text."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    if any(isinstance(record.get(key), str) for key in KEYS):
        return None
    return f"no text under {', '.join(repr(key) for key in KEYS)}"
