"""A publisher, a writer of refs, a collector or a build that is killed -9 at any moment leaves a readable lake.

One more run then ends with the same content digests as a run that nobody broke. The moments are drawn from a fixed seed
over the time that an unbroken run takes; the processes are real. Landing has its own such test.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from lake.config import LakePaths, lake_paths
from lake.query.query import Lake
from lake.releases.gc import collect
from lake.releases.publish import publish
from lake.releases.workspace import content, open_workspace
from lake.storage.refs import MemoVersion, Refs, Release, TableVersion
from lake.storage.table import append, snapshot
from tests.effort import rounds
from tests.lake.releases.test_gc import age
from tests.small_lake import Row, SmallLake, rows

pytestmark = [pytest.mark.integration, pytest.mark.kill]
CONTEXT = multiprocessing.get_context("forkserver")
PRELOADED = ["releases.publish", "releases.gc", "query.query", "storage.table", "kernels.project", "kernels.memo"]
CONTEXT.set_forkserver_preload([f"lake.{module}" for module in PRELOADED])


def _publish(started: Event, paths: LakePaths) -> None:
    started.set()
    publish(paths)


def _collect(started: Event, home: str) -> None:
    started.set()
    collect(lake_paths(home), keep_last=1)
    collect(lake_paths(home), keep_last=1)


def _write_refs(started: Event, home: str) -> None:
    started.set()
    refs = Refs(home)
    for number in range(len(refs.numbers()) + 1, 2000):
        refs.add(made_up(number, home))
        refs.add_tag("newest", number, force=True)


def made_up(number: int, home: str) -> Release:
    """Return a release whose content follows from its number."""
    tables = {f"t{i}": TableVersion(number, i, f"{number:032x}", "1.0.0") for i in range(20)}
    memos = {"chat": MemoVersion("f", number)}
    return Release(number, number - 1 or None, tables, {"traces": number}, memos, None, "p", "2026-01-01", home)


def run(work: Callable[..., None], *arguments: object, after: float | None = None) -> float:
    """Run work in a process of its own; kill it -9 so many seconds after it began. Returns the seconds that it ran."""
    started = CONTEXT.Event()
    process = CONTEXT.Process(target=work, args=(started, *arguments))
    process.start()
    assert started.wait(120)
    began = time.monotonic()
    process.join(after)
    if process.is_alive():
        assert process.pid
        os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return time.monotonic() - began


def digests(home: str, number: int) -> dict[str, tuple[int, str]]:
    """Read every row of a release and return the digests of what was read, not what the release says."""
    lake = Lake(home)
    release = lake.release(number)
    found = {}
    for name in release.tables:
        read = lake.sql(
            "select count(*) as n, sum(('0x' || left(row_hash, 16))::ubigint) as a, "
            f"sum(('0x' || right(row_hash, 16))::ubigint) as b from {name}",
            release=number,
        ).row(0)
        found[name] = (read[0], f"{(read[1] or 0) % 2**64:016x}{(read[2] or 0) % 2**64:016x}")
    assert found == {n: (t.rows, t.digest) for n, t in release.tables.items()}
    return found


def contents(round_: int) -> tuple[list[Row], list[Row]]:
    """Return the rows of a round: some stay, some go, some change."""
    numbers = range(round_ * 7, 400 + round_ * 30)
    return [r for n in numbers for r in rows(n, text=f"text {n % 5 and round_}")], rows(*range(round_, 60))


def test_publish(tmp_path: Path) -> None:
    broken, whole = (
        SmallLake.make(tmp_path, "broken", tmp_path / "a"),
        SmallLake.make(tmp_path, "whole", tmp_path / "b"),
    )
    moments = random.Random(1)
    for lake in (broken, whole):
        lake.build(*contents(0))
        publish(lake.paths)
    whole.build(*contents(1))
    span = run(_publish, whole.paths)
    killed = 0
    for round_ in range(1, rounds(8) + 1):
        if round_ > 1:
            whole.build(*contents(round_))
            publish(whole.paths)
        last = Refs(broken.paths.home).numbers()[-1]
        before = digests(broken.paths.home, last)
        broken.build(*contents(round_))
        run(_publish, broken.paths, after=moments.uniform(0, span))
        newest = Refs(broken.paths.home).numbers()[-1]
        killed += newest == last
        assert digests(broken.paths.home, last) == before
        if newest == last:
            assert publish(broken.paths).is_new
        newest = Refs(broken.paths.home).numbers()[-1]
        assert digests(broken.paths.home, newest) == digests(whole.paths.home, newest)
        with open_workspace(broken.paths.workspace) as connection:
            assert digests(broken.paths.home, newest)["examples"] == content(connection, "main.examples")
    assert Refs(broken.paths.home).numbers() == Refs(whole.paths.home).numbers() == list(range(1, rounds(8) + 2))
    assert killed >= 3


def test_refs(tmp_path: Path) -> None:
    home, moments, last = str(tmp_path), random.Random(2), 0
    for _ in range(rounds(6)):
        run(_write_refs, home, after=moments.uniform(0.02, 0.3))
        refs = Refs(home)
        assert refs.numbers() == list(range(1, len(refs.numbers()) + 1)) and len(refs.numbers()) >= last
        last = len(refs.numbers())
        assert [refs.load(n) for n in refs.numbers()] == [made_up(n, home) for n in refs.numbers()]
        assert all(1 <= number <= last for number in refs.tags().values())
    assert last > 6


@pytest.fixture
def littered(tmp_path: Path) -> Callable[[str], SmallLake]:
    """Make a lake with releases to give up and files of publishers that died, all of them old."""

    def make(name: str) -> SmallLake:
        made = SmallLake.make(tmp_path, name, tmp_path / f"home_{name}")
        for n in range(3):
            made.build(rows(*range(50), text=f"text {n}"))
            publish(made.paths)
        for table in ("examples", "hits"):
            base = snapshot(f"{made.paths.home}/tables/{table}")
            assert base is not None
            for n in range(40):
                (Path(base.uri) / f"part-{n:032x}.parquet").write_bytes(b"PAR1" * 1000)
        data = Lake(made.paths.home).sql("select * from examples limit 1").to_arrow()
        base = snapshot(f"{made.paths.home}/tables/examples")
        assert base is not None
        append(base.uri, base.schema, data.cast(base.schema))
        age(Path(made.paths.home), 48)
        return made

    return make


def test_gc(littered: Callable[[str], SmallLake]) -> None:
    whole = littered("whole")
    span = run(_collect, whole.paths.home)
    expected = digests(whole.paths.home, 3)
    moments = random.Random(3)
    for n in range(rounds(2)):
        broken = littered(f"broken{n}")
        for _ in range(3):
            run(_collect, broken.paths.home, after=moments.uniform(0, span))
            assert digests(broken.paths.home, 3) == expected
            for number in Refs(broken.paths.home).numbers():
                digests(broken.paths.home, number)
        collect(lake_paths(broken.paths.home), keep_last=1)
        collect(lake_paths(broken.paths.home), keep_last=1)
        assert digests(broken.paths.home, 3) == expected and Refs(broken.paths.home).numbers() == [3]
        left = [len(list(Path(lake.paths.home).rglob("*.parquet"))) for lake in (broken, whole)]
        assert left[0] == left[1] <= 4
