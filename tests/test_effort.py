"""What `make attack` must raise it can raise, and what runs dbt is not in `make check`."""

from __future__ import annotations

import re

from tests.conftest import ROOT

FILES = {str(p): p.read_text("utf-8") for p in (ROOT / "tests").rglob("test_*.py") if p.name != "test_effort.py"}


def test_no_property_has_a_number_of_examples_of_its_own() -> None:
    own = re.compile(r"max_examples=(?!examples\()")
    assert [name for name, text in FILES.items() if own.search(text)] == []


def test_files_that_run_dbt_are_marked() -> None:
    imports = ("tests.dbt_lake import .*DbtLake", "tests import dbt_process", "lake.releases.build import")
    runs = re.compile(f"^from ({'|'.join(imports)})", re.MULTILINE)
    assert [name for name, text in FILES.items() if runs.search(text) and "pytest.mark.integration" not in text] == []
