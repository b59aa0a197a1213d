"""Every real source lands; landed again from elsewhere, or from a copy, it adds nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lake.landing.land import Summary, land
from tests.conftest import DATA
from tests.lake.landing.landed import rows

KINDS = {"traces": "traces", "web": "web", "synthetic": "synthetic", "eval": "benchmark"}
SOURCES = [(folder, s.name) for folder in KINDS for s in sorted((DATA / folder).glob("*")) if s.is_dir()]


@pytest.mark.integration
@pytest.mark.parametrize(("folder", "source"), SOURCES)
def test_a_source_landed_twice_adds_nothing(
    data: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, source: str
) -> None:
    kind = KINDS[folder]
    monkeypatch.chdir(data)
    first = land([Path(folder, source)], kind, source)
    assert first.read == first.landed + first.already + first.rejected + first.skipped
    assert first.landed > 0
    assert first.files == sum(len(names) for _, _, names in os.walk(data / folder / source))
    assert len(rows(home, kind, "record_id")) == len(set(rows(home, kind, "record_id"))) == first.landed
    assert len(rows(home, "rejects", "reject_id")) == first.rejected
    monkeypatch.chdir(data / folder)
    same(first, land([source], kind, source))
    shutil.copytree(data / folder / source, tmp_path / "copy" / source)
    monkeypatch.chdir(tmp_path)
    same(first, land([tmp_path / "copy" / source], kind, source, root=tmp_path / "copy" / source))


def same(first: Summary, again: Summary) -> None:
    assert (again.landed, again.rejected, again.read, again.skipped) == (0, 0, first.read, first.skipped)
    assert again.already == first.landed + first.already + first.rejected


def test_gpteacher_reads_12188_and_lands_12163(data: Path, home: Path) -> None:
    found = land([data / "synthetic/gpteacher"], "synthetic", "gpteacher")
    assert (found.read, found.landed, found.already, found.rejected) == (12_188, 12_163, 25, 0)


def test_tau_bench_lands_200_runs(data: Path, home: Path) -> None:
    found = land([data / "traces/tau_bench/historical_trajectories/gpt-4o-airline.json"], "traces", "tau_bench")
    assert (found.read, found.landed) == (200, 200)


def test_gsm8k_lands_7473_and_1319(data: Path, home: Path) -> None:
    land([data / "eval/gsm8k"], "benchmark", "gsm8k")
    counts = {Path(path).name: landed for path, landed in rows(home, "landings", "path, landed")}
    assert [n for n in counts.values() if n in (7473, 1319)].count(7473) == 1
    assert sorted(n for name, n in counts.items() if "train" in name or name.startswith("test")) == [1319, 7473]


def test_the_docs_of_react_native_are_416_pages(data: Path, home: Path) -> None:
    found = land([data / "web/react_native_docs/website"], "web", "react_native_docs")
    assert (found.read, found.landed) == (416, 416)


def test_plain_and_gzip_twins_land_as_one_record_each(data: Path, home: Path) -> None:
    land([data / "web/cc_whirlwind"], "web", "cc_whirlwind", format="warc")
    assert len(rows(home, "web", "record_id")) == 2
