"""Claude Code session logs: one event a line, with `sessionId` and `uuid`; grouped to sessions in staging."""

from __future__ import annotations

from collections.abc import Iterable

from lake.sources._span_keys import span_key

NAME = "claude_code"
KINDS = ("traces",)
ORDER = 10
KEYS = ("type", "sessionId", "uuid", "parentUuid", "message", "timestamp")
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a line lacks to be of a session log."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    if record.get("type") == "summary" and "leafUuid" in record:
        return None
    missing = [k for k in ("sessionId", "uuid", "type") if not isinstance(record.get(k), str)]
    return f"no key {missing[0]!r}" if missing else None


def split(payload: bytes) -> Iterable[bytes]:
    """Return the line: it is one event."""
    return [payload]


def natural_key(record: object) -> str | None:
    """Return session and event; a hash for the lines that name none."""
    known = record if isinstance(record, dict) else {}
    return span_key(known.get("sessionId"), known.get("uuid"), record)


def observed_at(record: object) -> str | None:
    """Return the time of the event."""
    stamp = record.get("timestamp") if isinstance(record, dict) else None
    return stamp if isinstance(stamp, str) else None
