"""Names and values as SQL text."""

from __future__ import annotations

import re
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


def texts(sql: str) -> list[str]:
    r"""Return the texts that SQL without comments has as literals.

    >>> texts("select 'it''s' as \"a 'name'\"")
    ["it's"]
    """
    matches = re.finditer(r""" "(?:[^"]|"")*" | '((?:[^']|'')*)' """, sql, re.VERBOSE)
    return [match[1].replace("''", "'") for match in matches if match[1] is not None]


def literals(values: Iterable[str | int | float]) -> str:
    """Return values as the inside of an SQL list: `[...]` or `in (...)`."""
    return ", ".join(map(literal, values))
