"""A lake that went the whole way once, for the tests that read it."""

from __future__ import annotations

import fcntl
import json
import pickle
import shutil
from pathlib import Path

import pytest

from lake.config import LakePaths
from lake.landing.land import land
from lake.releases.build import Built, build
from tests.conftest import ROOT

QUESTION = "A farmer has seventeen red hens and sells nine of them at the market on Monday; how many hens remain?"


def chat(number: int, extra: str = "") -> str:
    """Return a line with a chat of two turns."""
    messages = [
        {"role": "user", "content": f"Please explain step number {number} of baking a loaf of bread. {extra}".strip()},
        {"role": "assistant", "content": f"In step {number} you knead the dough for {number} minutes and let it rest."},
    ]
    return json.dumps({"messages": messages})


def write_input(folder: Path) -> Path:
    """Write chats (line 3 repeats line 2, line 5 is broken, line 6 holds a benchmark question) and the benchmark."""
    folder.mkdir(parents=True)
    lines = [chat(1), chat(2), chat(2), chat(4), '{"messages": [', chat(6, QUESTION), *(chat(n) for n in range(7, 20))]
    (folder / "chats.jsonl").write_text("\n".join(lines) + "\n")
    items = [
        {"question": QUESTION, "answer": "8"},
        {"question": "How many legs do six healthy spiders have?", "answer": "48"},
    ]
    (folder / "items.jsonl").write_text("".join(json.dumps(i) + "\n" for i in items))
    return folder


def land_input(folder: Path, home: str) -> None:
    """Land what `write_input` wrote."""
    land([folder / "chats.jsonl"], "traces", "bakery", home=home, license="MIT", options={"generator_model": "m1"})
    land([folder / "items.jsonl"], "benchmark", "farm", home=home, options={"suite": "farm", "split": "test"})


def places_in(folder: Path, workspace: str = "one") -> LakePaths:
    """Return a lake in a folder, with a workspace of its own, on this project."""
    return LakePaths(str(folder / "lake"), folder / f"{workspace}.duckdb", ROOT)


@pytest.fixture(scope="session")
def dbt_apart(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep dbt's own files out of the checkout, and apart from those of other test processes."""
    folder = tmp_path_factory.mktemp("dbt")
    patch = pytest.MonkeyPatch()
    patch.setenv("DBT_TARGET_PATH", str(folder / "target"))
    patch.setenv("DBT_LOG_PATH", str(folder / "logs"))


@pytest.fixture(scope="session")
def built(dbt_apart: None, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> tuple[LakePaths, Built]:
    """The small input landed, built, audited and published as release 1; its workspace is not there.

    It is built once for all test processes, and each has a copy: nothing in a lake holds the path of the lake.
    """
    pytest.importorskip("soda_duckdb", reason="the extra soda is not installed")
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "built"
    folder.mkdir(exist_ok=True)
    result = folder / "built.pickle"  # written last
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.is_file():
            shutil.rmtree(folder / "input", ignore_errors=True)
            paths = places_in(folder)
            land_input(write_input(folder / "input"), paths.home)
            result.write_bytes(pickle.dumps(build(paths, tag="first")))
    copy = places_in(tmp_path_factory.mktemp("built"))
    shutil.copytree(folder / "lake", copy.home)
    return copy, pickle.loads(result.read_bytes())
