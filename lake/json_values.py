"""Values of tables as JSON has them: the one rule for payloads of rows that land and for what `lake sql` prints."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any


def json_value(value: Any, number: Callable[[float | Decimal], Any]) -> Any:
    """Return what JSON has for a value as Arrow or DuckDB gives it.

    Bytes become base64, times ISO 8601, maps lists of pairs, and what JSON has nothing for (durations, UUIDs) text.

    Args:
        value: a cell, nested or not.
        number: what to write for a decimal, NaN or infinity, the numbers that readers of JSON do not agree on.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else number(value)
    if isinstance(value, Decimal):
        return number(value)
    if isinstance(value, dict):
        return {key: json_value(item, number) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item, number) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)


def exact_number(value: float | Decimal) -> str:
    """Return a decimal, NaN or infinity as text that keeps all of it."""
    if isinstance(value, Decimal):
        return str(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def usual_number(value: float | Decimal) -> int | float | str | None:
    """Return a decimal as a number, as text where no float has all its digits; NaN and infinities as null."""
    if not isinstance(value, Decimal):
        return None
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)
