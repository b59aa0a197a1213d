"""OpenAI chat messages: an object with a list `messages`, or a file that is one list of messages."""

NAME = "openai_chat"
KINDS = ("traces", "synthetic")
ORDER = 60
IDENTITY = "record"
KEYS = ("messages", "tools")
ITEMS = (None, ".")


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a chat."""
    messages = record if isinstance(record, list) else record.get("messages") if isinstance(record, dict) else None
    if not isinstance(messages, list) or not messages:
        return "no list 'messages'"
    says = all(isinstance(m, dict) and isinstance(m.get("role", m.get("type")), str) for m in messages)
    return None if says else "an element of 'messages' has no role"
