"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import effort

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("LAKEWRIGHT_DATA", ROOT.parent / "shared" / "data"))

effort.load_profile()


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
