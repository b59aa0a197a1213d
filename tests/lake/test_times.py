"""Points in time: what each writing means, and what none means."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.sources._otlp import observed_at
from lake.sources.warc import arc_date
from lake.times import epoch_number, epoch_time, utc_time
from transforms.chat.units import time


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-01:00", "yesterday", "", "2025-06-14 10:00:00 UTC"]
)
def test_a_time_that_utc_does_not_have_is_none(text: str) -> None:
    assert utc_time(text) is None


def test_no_text_is_no_time() -> None:
    assert utc_time(None) is None


@given(st.datetimes())
def test_iso_text_round_trips_and_is_utc_where_it_names_no_zone(when: datetime) -> None:
    assert utc_time(when.isoformat()) == when.replace(tzinfo=UTC)
    assert utc_time(when.isoformat() + "Z") == when.replace(tzinfo=UTC)
    assert utc_time(when.isoformat(" ")) == when.replace(tzinfo=UTC)


def test_a_zone_is_undone() -> None:
    read = utc_time("2025-06-14T12:30:00+02:30")
    assert read is not None
    assert (read, read.tzinfo) == (datetime(2025, 6, 14, 10, tzinfo=UTC), UTC)


def test_numbers_since_1970_are_pairs_digits_or_numbers() -> None:
    assert epoch_number([1749895200, 5]) == epoch_number("1749895200000000005") == 1749895200000000005
    for other in ([1, 2, 3], [True, 1], "1e9", "-1", "\u0661", 1.5, None):
        assert epoch_number(other) == other
    assert epoch_number("1" * 41) is None
    assert epoch_time(1749895200000000) == datetime(2025, 6, 14, 10, tzinfo=UTC)
    assert epoch_time(10**18) is None


@given(st.integers(10**17 + 1, 10**19 - 1))
def test_nanoseconds_are_the_same_time_to_landing_and_to_the_reader(nanoseconds: int) -> None:
    ended = observed_at({"endTimeUnixNano": str(nanoseconds)})
    assert utc_time(ended) == time(nanoseconds) == time(str(nanoseconds))


@pytest.mark.parametrize("digits", ["1" * 5000, "9" * 20])
def test_a_number_too_long_for_a_time_is_none(digits: str) -> None:
    assert utc_time(observed_at({"endTimeUnixNano": digits})) is None
    assert time(digits) is None


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        ("20250614103059", datetime(2025, 6, 14, 10, 30, 59, tzinfo=UTC)),
        ("2025061410", datetime(2025, 6, 14, 10, tzinfo=UTC)),
        ("20250614", datetime(2025, 6, 14, tzinfo=UTC)),
        ("20250614103059123", datetime(2025, 6, 14, 10, 30, 59, tzinfo=UTC)),
        ("20251314000000", None),
        ("00000614000000", None),
        ("20250614106000", None),
    ],
)
def test_dates_of_arc_are_digits_or_their_beginning(digits: str, expected: datetime | None) -> None:
    assert arc_date(digits) == expected
