"""Processes that land at once land every record once, and a landing killed anywhere is completed by another."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lake.land import land
from tests.lake.landed import content, rows

# Small batches, so that many commits meet.
RUN = """
import sys, time
from pathlib import Path
from lake import batches, containers
from lake.land import land
batches.BATCH_BYTES, batches.LOOKUP_BYTES, containers.CHUNK = 12_000, 4_000, 3_000
home, gate, *paths = sys.argv[1:]
print("ready", flush=True)
while gate != "-" and not Path(gate).exists():
    time.sleep(0.002)
s = land(paths, "traces", "s", root=str(Path(paths[0]).parent), home=home)
print(s.read, s.landed, s.already, s.rejected, s.skipped)
"""


def chat(text: str) -> str:
    return json.dumps({"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]})


def write(folder: Path, name: str, texts: list[str]) -> Path:
    folder.mkdir(exist_ok=True)
    lines = [f"{{broken {t}" if i % 40 == 39 else chat(t) for i, t in enumerate(texts)]
    (folder / name).write_text("\n".join(lines))
    return folder / name


def race(home: Path, calls: list[list[Path]]) -> list[list[int]]:
    gate = home.parent / "gate"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, str(home), str(gate), *map(str, paths)], stdout=subprocess.PIPE, text=True
        )
        for paths in calls
    ]
    assert [p.stdout.readline() for p in started if p.stdout] == ["ready\n"] * len(calls)
    gate.touch()
    said = [p.communicate(timeout=300)[0] for p in started]
    assert [p.returncode for p in started] == [0] * len(calls)
    return [[int(n) for n in s.split()] for s in said]


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
    run = RUN.replace('"traces", "s"', '"web", "s"')
    calls = [[sys.executable, "-c", run, str(home), "-", str(folder)]] * 2
    started = [subprocess.Popen([*c[:5], f"{folder}/"], stdout=subprocess.PIPE, text=True) for c in calls]
    said = [[int(n) for n in p.communicate(timeout=300)[0].split()[1:]] for p in started]
    assert [s[0] for s in said] == [150, 150]
    assert sum(s[1] for s in said) == 150
    assert len(rows(home, "web")) == 150


def test_a_landing_killed_anywhere_is_completed_by_another(tmp_path: Path) -> None:
    """Thirty kill -9 at random moments: the lake is readable after each, and whole after the run that survives."""
    folder = tmp_path / "in"
    texts = [str(n) for n in range(500)]
    write(folder, "a.jsonl", texts)
    write(folder, "b.jsonl", [*texts[:200], *(f"b{n}" for n in range(300))])
    land([folder], "traces", "s", root=tmp_path, home=tmp_path / "unbroken")
    truth = content(tmp_path / "unbroken", "traces")
    files = len(list((tmp_path / "unbroken").rglob("*.*")))  # in one batch; the killed runs make many
    draw = random.Random(7)
    homes, killed, partial = 0, 0, 0
    while killed < 30:
        home = tmp_path / f"lake{homes}"
        if not killed_at(draw.randint(0, 3 * files), draw.uniform(0, 0.02), home, folder):
            assert content(home, "traces") == truth
            homes += 1
            continue
        killed += 1
        records, rejects = rows(home, "traces", "record_id"), rows(home, "rejects", "reject_id")
        assert (len(set(records)), len(set(rejects))) == (len(records), len(rejects))
        rows(home, "landings")
        partial += 0 < len(records) < len(truth[0])
    last = land([folder], "traces", "s", root=tmp_path, home=home)
    assert last.read == last.landed + last.already + last.rejected + last.skipped == 1000
    assert content(home, "traces") == truth
    assert partial >= 5, "hardly a kill met a landing at work: the test shows nothing"


def killed_at(files: int, seconds: float, home: Path, folder: Path) -> bool:
    """Land in a process and kill it some time after it has written so many files; False: it was done before."""
    before = len(list(home.rglob("*.*")))
    call = [sys.executable, "-c", RUN, str(home), "-", str(folder)]
    process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    while len(list(home.rglob("*.*"))) - before < files and process.poll() is None:
        time.sleep(0.001)
    time.sleep(seconds)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGKILL), errors
    return process.returncode != 0
