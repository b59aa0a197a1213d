"""Names and values as SQL text."""

from __future__ import annotations

from collections.abc import Iterable


def identifier(*parts: str) -> str:
    """Return a name as SQL has it, quoted; several parts are joined by dots.

    >>> identifier("raw", 'my "table"')
    '"raw"."my ""table\"\"\"'
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def literal(value: str | int | float) -> str:
    """Return a text or number as SQL has it.

    >>> literal("it's"), literal(0.5)
    ("'it''s'", '0.5')
    """
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def literals(values: Iterable[str | int | float]) -> str:
    """Return values as the inside of an SQL list: `[...]` or `in (...)`."""
    return ", ".join(map(literal, values))
