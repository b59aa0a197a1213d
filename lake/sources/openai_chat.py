"""OpenAI chat messages: an object with a list `messages`, or a file that is one list of messages."""

from __future__ import annotations

from lake.sources._turns import names_role

NAME = "openai_chat"
KINDS = ("traces", "synthetic")
ORDER = 60
KEYS = ("messages", "tools")
ITEMS = (None, ".")


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a chat."""
    messages = record if isinstance(record, list) else record.get("messages") if isinstance(record, dict) else None
    if not isinstance(messages, list) or not messages:
        return "no list 'messages'"
    return None if all(_is_turn(message) for message in messages) else "an element of 'messages' has no role"


def _is_turn(message: object) -> bool:
    # Any word may be a role: agents write the names of tools there.
    worded = isinstance(message, dict) and isinstance(message.get("role", message.get("type")), str)
    return worded or names_role(message)
