"""`lake build`: the whole way to a release, nothing twice, and what to do when somebody else was quicker."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lake.config import LakePaths
from lake.errors import AuditError, BusyError, ConflictError, UsageError
from lake.landing.land import land
from lake.query.query import Lake
from lake.releases.build import Built, build
from lake.releases.publish import publish
from lake.storage.refs import Refs
from tests.effort import rounds
from tests.lake.conftest import chat, land_input, places_in, write_input
from tests.small_lake import SmallLake, rows

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800), pytest.mark.usefixtures("dbt_apart")]


def contents(home: str, number: int) -> dict[str, tuple[int, str]]:
    return {n: (t.rows, t.digest) for n, t in Lake(home).release(number).tables.items()}


def test_a_build_ends_in_a_release_whose_funnel_accounts_for_every_example(built: tuple[LakePaths, Built]) -> None:
    paths, done = built
    assert done.published is not None and done.published.is_new and done.published.release.number == 1
    assert Refs(paths.home).tags() == {"first": 1}
    lake = Lake(paths.home)
    assert lake.sql("select count(*) from examples").item() == 20
    assert done.funnel == [
        {"kind": "benchmark", "source": "farm", "examples": 2, "kept": 2, "dropped": {}},
        {"kind": "traces", "source": "bakery", "examples": 18, "kept": 16, "dropped": {"contamination": 1, "exact": 1}},
    ]
    assert lake.sql("select count(*) from decisions where kept").item() == 18
    assert "in all: 20 examples = 18 kept + 2 dropped" in done.as_text()
    assert done.checks > 100 and done.as_json()["release"] == 1
    release = lake.release("first")
    assert release.raw_pins["traces"] is not None and release.raw_pins["web"] is None
    assert len(release.memos["chat"].fingerprint) == 32


def test_a_build_without_news_computes_nothing_and_makes_no_release(
    built: tuple[LakePaths, Built], tmp_path: Path
) -> None:
    paths, first = built
    shutil.copytree(paths.home, tmp_path / "lake")
    mine = places_in(tmp_path)
    again = build(mine)
    assert again.published is not None and not again.published.is_new and sum(again.published.written.values()) == 0
    assert {m["kernel"]: m["computed"] for m in again.memos} == dict.fromkeys([m["kernel"] for m in first.memos], 0)
    assert Refs(mine.home).numbers() == [1] and contents(mine.home, 1) == contents(paths.home, 1)


@pytest.mark.slow
def test_a_publisher_who_comes_second_stops_and_with_rebase_both_sets_of_rows_are_there(
    built: tuple[LakePaths, Built], tmp_path: Path
) -> None:
    shutil.copytree(built[0].home, tmp_path / "lake")
    quick, slow = places_in(tmp_path, "quick"), places_in(tmp_path, "slow")
    for name, number in (("quick", 100), ("slow", 200)):
        (tmp_path / f"{name}.jsonl").write_text(chat(number) + "\n")
    land([tmp_path / "quick.jsonl"], "traces", "quick", home=quick.home, license="MIT")
    assert build(quick, publishes=False).published is None
    land([tmp_path / "slow.jsonl"], "traces", "slow", home=quick.home, license="MIT")
    said: list[str] = []

    def overtake(line: str) -> None:
        said.append(line)
        if len(said) == 1:  # the slow build is done and being audited
            publish(quick)

    done = build(slow, rebase=True, say=overtake)
    assert "somebody published meanwhile; building again on their release" in said
    assert done.published is not None and (done.published.release.number, done.published.release.parent) == (3, 2)
    sources = "select source from examples where source in ('quick', 'slow') order by 1"
    assert Lake(slow.home).sql(sources, release=2).rows() == [("quick",)]
    assert Lake(slow.home).sql(sources).rows() == [("quick",), ("slow",)]
    with pytest.raises(ConflictError, match="--rebase"):
        publish(quick)


@pytest.mark.parametrize(("tag", "said"), [("my tag", "not allowed"), ("gold", "names release 1 already")])
def test_a_tag_that_cannot_be_given_is_refused_before_anything_is_built(tmp_path: Path, tag: str, said: str) -> None:
    small = SmallLake.make(tmp_path)
    for n in range(2):
        small.build(rows(1, n))
        publish(small.paths, tag=None if n else "gold")
    shutil.rmtree(small.paths.project)
    with pytest.raises(UsageError, match=said):
        build(small.paths, tag)


@pytest.mark.parametrize(("error", "builds"), [(ConflictError, 5), (BusyError, 1)])
def test_rebase_builds_again_for_a_release_of_others_and_not_for_a_busy_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception], builds: int
) -> None:
    small = SmallLake.make(tmp_path)
    made = []

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr("lake.releases.build.run_dbt", lambda *_: made.append(small.build(rows(1))))
    monkeypatch.setattr("lake.releases.build.publish", refuse)
    with pytest.raises(error):
        build(small.paths, rebase=True)
    assert len(made) == builds


def test_a_failed_dbt_publishes_nothing(built: tuple[LakePaths, Built], tmp_path: Path) -> None:
    paths = places_in(tmp_path)
    project = tmp_path / "project"
    for part in ("models", "contracts", "transforms/macros", "tests/dbt"):
        shutil.copytree(paths.project / part, project / part)
    for part in ("dbt_project.yml", "lake/profiles.yml"):
        (project / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(paths.project / part, project / part)
    (project / "models" / "staging" / "stg_nothing.sql").write_text("select * from {{ ref('nowhere') }}")
    land_input(write_input(tmp_path / "input"), paths.home)
    with pytest.raises(AuditError, match="dbt ended with status 2"):
        build(LakePaths(paths.home, paths.workspace, project), quiet=True)
    assert Refs(paths.home).numbers() == []


@pytest.mark.slow
@pytest.mark.kill
def test_a_build_killed_at_any_moment_leaves_a_lake_that_the_next_one_completes(
    built: tuple[LakePaths, Built], tmp_path: Path
) -> None:
    paths = places_in(tmp_path)
    land_input(write_input(tmp_path / "input"), paths.home)
    environment = os.environ | {"LAKE_HOME": paths.home, "LAKE_WORKSPACE": str(paths.workspace)}
    command = [sys.executable, "-c", "from lake.cli import main; main()", "build", "--json"]
    # The first kills hit a running build whatever the load: with a kernel's first results, and with a first table.
    signs = ("memo/*/*/*.parquet", "tables/*/*.parquet")
    span = sum(built[1].seconds.values())
    moments = random.Random(4)
    for n in range(rounds(2)):
        process = subprocess.Popen(
            command, cwd=paths.project, env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        if n < len(signs):
            while process.poll() is None and not any(Path(paths.home).glob(signs[n])):
                time.sleep(0.005)
        else:
            time.sleep(span * (moments.uniform(0.5, 0.95) if n % 2 else moments.uniform(0.2, 0.6)))
        process.kill()  # the command alone: its dbt must not live on and hold the workspace
        process.wait()
        if n < len(signs):
            assert process.returncode == -signal.SIGKILL and any(Path(paths.home).glob(signs[n]))
        assert Lake(paths.home).sql("select count(*) from raw.traces").item() == 18
        for number in Refs(paths.home).numbers():
            assert contents(paths.home, number) == contents(built[0].home, 1)
    done = build(paths)
    assert done.published is not None and done.published.release.number == 1
    assert contents(paths.home, 1) == contents(built[0].home, 1)
