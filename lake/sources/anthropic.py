"""Anthropic messages: requests with content blocks, responses, both together, recorded exchanges and streams."""

from __future__ import annotations

from lake.record_keys.chats import ANTHROPIC_CALLS, ANTHROPIC_RESULTS, ANTHROPIC_THOUGHTS

NAME = "anthropic"
KINDS = ("traces", "synthetic")
ORDER = 30
KEYS = ("messages", "system", "content", "stop_reason", "type", "role")
ITEMS = (None,)

BLOCKS = frozenset({*ANTHROPIC_CALLS, *ANTHROPIC_RESULTS, *ANTHROPIC_THOUGHTS})
MARKS = ('"type":"message"', '"type": "message"', "event: message_start")


def lacks(record: object) -> str | None:
    """Say what a record lacks to be of Anthropic's interface."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    if (
        _is_message(record)
        or _is_message(record.get("response"))
        or _holds_blocks(record)
        or _holds_blocks(record.get("request"))
    ):
        return None
    body = record.get("body")
    response = record.get("response")
    if isinstance(response, dict) and body is None:
        body = response.get("body")
    if _is_message(body) or (isinstance(body, str) and any(mark in body[:4096] for mark in MARKS)):
        return None
    return "no message with content blocks such as tool_use or thinking"


def _is_message(value: object) -> bool:
    """Say whether a value is a response of the messages interface."""
    return isinstance(value, dict) and value.get("type") == "message" and isinstance(value.get("content"), list)


def _holds_blocks(value: object) -> bool:
    """Say whether a request's messages hold blocks that Anthropic alone has."""
    messages = value.get("messages") if isinstance(value, dict) else None
    contents = [m.get("content") for m in messages if isinstance(m, dict)] if isinstance(messages, list) else []
    blocks = [b for c in contents if isinstance(c, list) for b in c if isinstance(b, dict)]
    return any(b.get("type") in BLOCKS for b in blocks if isinstance(b.get("type"), str))
