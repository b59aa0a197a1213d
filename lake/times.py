"""Points in time as records write them: ISO 8601 text, or numbers since 1970. Imports nothing of ours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST = 40  # characters of a time; `int` refuses texts of more than 4,300 digits


def utc_time(text: str | None) -> datetime | None:
    """Read ISO 8601 text.

    Args:
        text: a date or a date with a time; without a zone it is UTC.

    Returns:
        The time in UTC; None for anything else.

    >>> utc_time("2025-06-14T12:00:00+02:00") == utc_time("2025-06-14 10:00")
    True
    """
    try:
        read = datetime.fromisoformat(text or "")
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # year 1 with a zone east of Greenwich is no time in UTC
        return None


def epoch_number(value: object) -> object:
    """Return a time that is counted since 1970 as a number.

    Args:
        value: OpenTelemetry's pair [seconds, nanoseconds] (becomes nanoseconds), a text of digits, anything else.

    Returns:
        An int for these, None for more digits than any time has; any other value as it is.
    """
    if isinstance(value, list) and len(value) == 2 and all(type(part) is int for part in value):
        return value[0] * 10**9 + value[1]
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value) if len(value) <= LONGEST else None
    return value


def epoch_time(microseconds: int) -> datetime | None:
    """Return the UTC time of some microseconds since 1970; None beyond the year 9999."""
    try:
        return EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
