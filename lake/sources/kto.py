"""Chats with a label, wanted or not: messages or prompt and completion, with `label` or `kto_tag`."""

from __future__ import annotations

NAME = "kto"
KINDS = ("synthetic",)
ORDER = 20
IDENTITY = "record"
KEYS = ("messages", "label")
CHATS = ("messages", "conversations", "conversation", "items")


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a labelled chat."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    label = next((record[key] for key in ("label", "kto_tag") if key in record), None)
    if not (isinstance(label, bool) or (isinstance(label, int) and label in (0, 1)) or label in ("true", "false")):
        return "no 'label' or 'kto_tag' that says true or false"
    if any(isinstance(record.get(key), list) for key in CHATS):
        return None
    if all(isinstance(record.get(key), str | list) for key in ("prompt", "completion")):
        return None
    return "no list 'messages' or 'conversations', and no 'prompt' with 'completion'"
