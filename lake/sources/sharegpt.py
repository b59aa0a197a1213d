"""ShareGPT: a list `conversations` of turns with `from` and `value`."""

from __future__ import annotations

from lake.record_keys.chats import CONVERSATION_KEYS
from lake.sources._turns import names_role

NAME = "sharegpt"
KINDS = ("traces", "synthetic")
ORDER = 50
KEYS = ("conversations", "system", "tools", "id")
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a ShareGPT conversation."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    turns = next((record[k] for k in CONVERSATION_KEYS if isinstance(record.get(k), list)), None)
    if not turns:
        return "no list 'conversations'"
    spoken = all((isinstance(turn, dict) and "from" in turn) or names_role(turn) for turn in turns)
    return None if spoken else "a turn has no 'from'"
