"""Claude Code session logs: one line is one event, natural key (session, uuid); staging groups a session's lines.

The conversation is made of the lines `user` and `assistant`; a message is written one block a line under one message
id, which becomes the span's `turn_id` so that staging joins them again. Lines of a sub-agent (`isSidechain`) are a
conversation of their own. Summaries, snapshots and the program's own notes are no turns: `no_chat`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transforms.chat.blocks import UnreadableShape
from transforms.chat.formats.openai_chat import sampled
from transforms.chat.turns import turns
from transforms.chat.units import NO_CHAT, Unit, in_trace, time, unit

NOTES = ("summary", "system", "progress", "file-history-snapshot", "queue-operation", "custom-title", "attachment")


def units(record: object) -> list[Unit]:
    """Read one line.

    Raises:
        UnreadableShape: it is no such line.
    """
    if not isinstance(record, dict):
        raise UnreadableShape("no object")
    span, kind, inner = _line_span(record), record.get("type"), record.get("message")
    if kind not in ("user", "assistant"):
        if kind not in NOTES:
            raise UnreadableShape(f"type {kind!r}")
        return [in_trace(unit(None, problem=NO_CHAT), span)]
    if not isinstance(inner, dict) or "content" not in inner:
        raise UnreadableShape("no message with content")
    turn = unit(turns(inner, kind), created_at=span["started_at"], provenance=sampled(inner))
    return [in_trace(turn, {**span, "operation": "turn"})]


def _line_span(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a line belongs."""
    when = time(record.get("timestamp"))
    session, uuid, inner = record.get("sessionId"), record.get("uuid"), record.get("message")
    side = f"/{record.get('agentId') or 'sidechain'}" if record.get("isSidechain") is True else ""
    turn = inner.get("id") if isinstance(inner, dict) else None
    return {
        "trace_id": session + side if isinstance(session, str) and isinstance(uuid, str) else None,
        "span_id": uuid if isinstance(uuid, str) else None,
        "parent_id": record["parentUuid"] if isinstance(record.get("parentUuid"), str) else None,
        "operation": "other",
        "turn_id": turn if isinstance(turn, str) and turn else None,
        "started_at": when,
        "updated_at": when,
    }
