"""Processes that land at once land every record once, and a landing killed anywhere is completed by another."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from lake.landing.land import land
from tests.effort import rounds
from tests.lake.landing.landed import content, rows, started

pytestmark = pytest.mark.integration


def chat(text: str) -> str:
    return json.dumps({"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]})


def write(folder: Path, name: str, texts: list[str]) -> Path:
    folder.mkdir(exist_ok=True)
    lines = [f"{{broken {t}" if i % 40 == 39 else chat(t) for i, t in enumerate(texts)]
    (folder / name).write_text("\n".join(lines))
    return folder / name


def race(home: Path, calls: list[list[Path]], kind: str = "traces") -> list[list[int]]:
    gate = home.parent / "gate"
    racers = [started(home, kind, paths, gate) for paths in calls]
    gate.touch()
    said = [pipe.recv() for _, pipe in racers]
    for process, _ in racers:
        process.join(60)
    assert [process.exitcode for process, _ in racers] == [0] * len(calls)
    return said


@pytest.mark.parametrize("processes", [2, 8])
def test_processes_landing_the_same_file_land_each_record_once(home: Path, tmp_path: Path, processes: int) -> None:
    file = write(tmp_path / "in", "x.jsonl", [str(n) for n in range(240)])
    said = race(home, [[file]] * processes)
    assert [s[0] for s in said] == [240] * processes
    assert sum(s[1] for s in said) == 234
    assert sum(s[3] for s in said) == 6
    assert all(s[0] == s[1] + s[2] + s[3] + s[4] for s in said)
    land([file], "traces", "s", home=tmp_path / "alone")
    assert content(home, "traces") == content(tmp_path / "alone", "traces")


@pytest.mark.parametrize("processes", [2, 8])
def test_processes_landing_different_and_shared_files_land_each_record_once(
    home: Path, tmp_path: Path, processes: int
) -> None:
    folder = tmp_path / "in"
    shared = write(folder, "shared.jsonl", [str(n) for n in range(120)])
    own = [
        write(folder, f"{k}.jsonl", [*(str(n) for n in range(30)), *(f"{k} {n}" for n in range(90))])
        for k in range(processes)
    ]
    said = race(home, [[o, shared] if k % 2 else [shared, o] for k, o in enumerate(own)])
    assert [s[0] for s in said] == [240] * processes
    land([folder], "traces", "s", home=tmp_path / "alone")
    records, rejects = content(home, "traces")
    assert (records, rejects) == content(tmp_path / "alone", "traces")
    assert (sum(s[1] for s in said), sum(s[3] for s in said)) == (len(records), len(rejects))
    assert len({r[0] for r in records}) == len(records)


def test_documents_landed_by_two_processes_are_there_once(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for n in range(150):
        (folder / f"{n}.md").write_text(f"# page {n}\n" + "x" * 300)
    said = race(home, [[folder], [folder]], "web")
    assert [s[0] for s in said] == [150, 150]
    assert sum(s[1] for s in said) == 150
    assert len(rows(home, "web")) == 150


@pytest.mark.kill
def test_a_landing_killed_anywhere_is_completed_by_another(tmp_path: Path) -> None:
    """Kill -9 at random moments: the lake is readable after each, and whole after the run that survives.

    The first kill of each lake comes before its last record can: the landing waits after so many commits until it dies.
    """
    folder = tmp_path / "in"
    texts = [str(n) for n in range(500)]
    write(folder, "a.jsonl", texts)
    write(folder, "b.jsonl", [*texts[:200], *(f"b{n}" for n in range(300))])
    land([folder], "traces", "s", root=tmp_path, home=tmp_path / "unbroken")
    truth = content(tmp_path / "unbroken", "traces")
    files = number_of_files(tmp_path / "unbroken")  # of one batch; the killed runs make many
    draw = random.Random(7)
    partial = 0
    for number in range(rounds(6)):
        home = tmp_path / f"lake{number}"
        # Two kills a lake, the second at any moment, even after the last: nothing depends on whether it comes in time.
        killed_after_commits(1 + number % 3, home, folder)
        partial += 0 < check_readable(home) < len(truth[0])
        killed_at(draw.randint(0, 3 * files), draw.uniform(0, 0.02), home, folder)
        check_readable(home)
        last = land([folder], "traces", "s", root=tmp_path, home=home)
        assert last.read == last.landed + last.already + last.rejected + last.skipped == 1000
        assert content(home, "traces") == truth
    assert partial == rounds(6)


def check_readable(home: Path) -> int:
    """Check that no record and no reject is there twice; return how many records there are."""
    records, rejects = rows(home, "traces", "record_id"), rows(home, "rejects", "reject_id")
    assert (len(set(records)), len(set(rejects))) == (len(records), len(rejects))
    rows(home, "landings")
    return len(records)


def killed_after_commits(number: int, home: Path, folder: Path) -> None:
    """Land in a process that stops for good after so many commits of records, and kill it there."""
    stop = home.parent / f"{home.name}.stopped"
    process, _ = started(home, "traces", [folder], None, stop_after=(number, stop))
    deadline = time.monotonic() + 120
    while not stop.exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    assert stop.exists()
    process.kill()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def killed_at(files: int, seconds: float, home: Path, folder: Path) -> None:
    """Land in a process and kill it some time after it has written so many files, if it is not done before."""
    before = number_of_files(home)
    process, _ = started(home, "traces", [folder], None)
    while number_of_files(home) - before < files and process.exitcode is None:
        time.sleep(0.002)
    time.sleep(seconds)
    process.kill()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)


def number_of_files(home: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(home))
