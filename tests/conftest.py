"""Fixtures that all tests share."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests import effort

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("LAKEWRIGHT_DATA", ROOT.parent / "shared" / "data"))

WHOLLY_INTEGRATION = re.compile(r"^pytestmark = .*pytest\.mark\.integration", re.MULTILINE)
effort.load_profile()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Spare `make check` the imports of files that it runs no test of: TRL alone costs each process 6 s."""
    is_left_out = "not integration" in config.option.markexpr and collection_path.suffix == ".py"
    return True if is_left_out and WHOLLY_INTEGRATION.search(collection_path.read_text("utf-8")) else None


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real input, which is no part of the project."""
    if not DATA.is_dir():
        pytest.skip(f"the real input is not at {DATA}; set LAKEWRIGHT_DATA to its folder")
    return DATA


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty lake of its own, with its own workspace."""
    monkeypatch.setenv("LAKE_HOME", str(tmp_path / "lake"))
    monkeypatch.setenv("LAKE_WORKSPACE", str(tmp_path / "workspace.duckdb"))
    return tmp_path / "lake"
