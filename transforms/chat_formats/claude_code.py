"""Claude Code session logs: one line is one event, natural key (session, uuid); staging groups a session's lines.

The conversation is made of the lines `user` and `assistant`; a message is written one block a line under one message id, which
becomes the span's `turn_id` so that staging joins them again. Lines of a sub-agent (`isSidechain`) are a conversation of
their own. Summaries, snapshots and the program's own notes are no turns: `no_chat`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transforms.chat_formats.openai_chat import sampled
from transforms.chat_turns import UnreadableShape, turns
from transforms.chat_units import NO_CHAT, Unit, message_keys, time, unit

NOTES = ("summary", "system", "progress", "file-history-snapshot", "queue-operation", "custom-title", "attachment")


def units(record: object) -> list[Unit]:
    """Read one line."""
    if not isinstance(record, dict):
        raise UnreadableShape("no object")
    span, kind, inner = line_span(record), record.get("type"), record.get("message")
    if kind not in ("user", "assistant"):
        if kind not in NOTES:
            raise UnreadableShape(f"type {kind!r}")
        return [unit(None, span=span, problem=NO_CHAT)]
    if not isinstance(inner, dict) or "content" not in inner:
        return [unit(None, span=span, problem="unreadable_shape")]
    read = turns(inner, kind)
    return [
        unit(
            read,
            created_at=time(record.get("timestamp")),
            provenance=sampled(inner),
            span={**span, "operation": "turn", "keys": message_keys(read)},
        )
    ]


def line_span(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a line belongs."""
    session, uuid, inner = record.get("sessionId"), record.get("uuid"), record.get("message")
    side = f"/{record.get('agentId') or 'sidechain'}" if record.get("isSidechain") is True else ""
    turn = inner.get("id") if isinstance(inner, dict) else None
    return {
        "trace_id": session + side if isinstance(session, str) and isinstance(uuid, str) else None,
        "span_id": uuid if isinstance(uuid, str) else None,
        "parent_id": record["parentUuid"] if isinstance(record.get("parentUuid"), str) else None,
        "operation": "other",
        "turn_id": turn if isinstance(turn, str) and turn else None,
        "started_at": time(record.get("timestamp")),
    }
