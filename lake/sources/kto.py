"""Chats with a label, wanted or not: messages or prompt and completion, with `label` or `kto_tag`."""

from __future__ import annotations

from lake.record_keys.chats import COMPLETION_KEYS, CONVERSATION_KEYS, LABEL_KEYS, LABELS, PROMPT_KEYS

NAME = "kto"
KINDS = ("synthetic",)
ORDER = 20
KEYS = ("messages", "label")
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a labelled chat."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    label = next((record[key] for key in LABEL_KEYS if key in record), None)
    if not isinstance(label, bool | int | str) or label not in LABELS:
        return "no 'label' or 'kto_tag' that says true or false"
    if any(isinstance(record.get(key), list) for key in ("messages", *CONVERSATION_KEYS)):
        return None
    if all(any(isinstance(record.get(key), str | list) for key in keys) for keys in (PROMPT_KEYS, COMPLETION_KEYS)):
        return None
    return "no list 'messages' or 'conversations', and no 'prompt' with 'completion'"
