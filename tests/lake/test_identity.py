"""H is what the design says, in Python; `tests/models/test_macros.py` holds what SQL computes to it."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from lake.identity import H


def test_h_is_the_first_128_bits_of_sha256_over_length_prefixed_fields() -> None:
    expected = hashlib.sha256("6:record3:日7:payload".encode()).hexdigest()[:32]
    assert H("record", "日", b"payload") == expected


@given(st.lists(st.text()), st.lists(st.text()))
def test_different_lists_of_fields_have_different_hashes(a: list[str], b: list[str]) -> None:
    assert (H(*a) == H(*b)) == (a == b)
