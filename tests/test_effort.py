"""`make attack` reaches every property: none has a number of examples that it cannot raise."""

from __future__ import annotations

import re

from tests.conftest import ROOT


def test_no_property_has_a_number_of_examples_of_its_own() -> None:
    own = re.compile(r"max_examples=(?!examples\()")
    files = [p for p in (ROOT / "tests").rglob("test_*.py") if p.name != "test_effort.py"]
    assert [p.name for p in files if own.search(p.read_text("utf-8"))] == []
