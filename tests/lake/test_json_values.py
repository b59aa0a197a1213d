"""Values of tables become JSON without losing what JSON can hold."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest

from lake.json_values import exact_number, json_value, usual_number


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": [None, True, 7, "é", 1.5]}, {"a": [None, True, 7, "é", 1.5]}),
        ([("key", b"\x00\xff")], [["key", "AP8="]]),
        (datetime.datetime(2024, 1, 2, 12, tzinfo=datetime.UTC), "2024-01-02T12:00:00+00:00"),
        ([datetime.date(2024, 1, 2), datetime.time(3, 4)], ["2024-01-02", "03:04:00"]),
        (datetime.timedelta(days=1, seconds=5), "1 day, 0:00:05"),
    ],
)
def test_values_become_what_json_has(value: Any, expected: Any) -> None:
    assert json_value(value, exact_number) == json_value(value, usual_number) == expected
    json.dumps(expected, allow_nan=False)


@pytest.mark.parametrize(
    ("value", "exact", "usual"),
    [
        (Decimal("7.00"), "7.00", 7),
        (Decimal("2.5"), "2.5", 2.5),
        (Decimal("0.12345678901234567891"), "0.12345678901234567891", "0.12345678901234567891"),
        (Decimal(10**37), "1" + "0" * 37, 10**37),
        (float("nan"), "NaN", None),
        (float("-inf"), "-Infinity", None),
    ],
)
def test_a_decimal_loses_no_digit(value: Any, exact: str, usual: Any) -> None:
    assert json_value([value], exact_number) == [exact]
    assert json_value([value], usual_number) == [usual]
