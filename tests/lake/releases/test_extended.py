"""Builds on a release: what is made anew, what is taken over, and that tests and audit see faults in either."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from lake.config import LakePaths
from lake.errors import AuditError
from lake.landing.land import land
from lake.releases.audit import audit
from lake.releases.build import Built, build, run_dbt
from lake.storage.refs import Refs
from tests import dbt_process
from tests.lake.conftest import chat, places_in

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800), pytest.mark.usefixtures("dbt_apart")]

EXTENDED = ("examples", "example_facts", "decisions", "train_sft")


@dataclass(frozen=True)
class Grown:
    """A release of 20 examples, and a build on it with one more chat, a repeated one and an amended licence."""

    paths: LakePaths
    done: Built


def count(paths: LakePaths, relation: str) -> int:
    with duckdb.connect(paths.workspace, read_only=True) as connection:
        return int(connection.execute(f"select count(*) from {relation}").fetchall()[0][0])


def hashes(paths: LakePaths) -> dict[str, list[tuple[str, ...]]]:
    """Return the row hashes of each table of a workspace."""
    with duckdb.connect(paths.workspace, read_only=True) as connection:
        connection.execute("set timezone = 'UTC'")
        names = Refs(paths.home).find().tables
        return {n: connection.execute(f"select row_hash from main.{n} order by 1").fetchall() for n in names}


@pytest.fixture(scope="module")
def grown(built: tuple[LakePaths, Built], tmp_path_factory: pytest.TempPathFactory) -> Grown:
    folder = tmp_path_factory.mktemp("grown")
    shutil.copytree(built[0].home, folder / "lake")
    paths = places_in(folder)
    (folder / "more.jsonl").write_text(f"{chat(100)}\n{chat(4)}\n")
    land([folder / "more.jsonl"], "traces", "more", home=paths.home, license="MIT")
    (folder / "items.jsonl").write_text(json.dumps({"question": "How many?", "answer": "1"}) + "\n")
    land([folder / "items.jsonl"], "benchmark", "quiz", home=paths.home, license="MIT")
    land([folder / "items.jsonl"], "benchmark", "quiz", home=paths.home, license="CC0-1.0", amend=True)
    return Grown(paths, build(paths))


def test_new_rows_alone_are_made_and_written(grown: Grown) -> None:
    release = Refs(grown.paths.home).find()
    assert (release.number, release.tables["examples"].rows, release.tables["train_sft"].rows) == (2, 23, 17)
    made = {name: count(grown.paths, f"_added.{name}") for name in EXTENDED}
    written = dict(grown.done.published.written) if grown.done.published else {}
    # Of equal chats the one of lesser id stays, so the repeated one may take the place of an old row.
    moved = count(grown.paths, "_removed.decisions")
    assert moved in (0, 1)
    assert made == {"examples": 3, "example_facts": 3, "decisions": 3 + moved, "train_sft": 1 + moved}
    assert count(grown.paths, "_removed.examples") == 0
    assert count(grown.paths, "_removed.train_sft") == moved
    assert written["examples"] == 3 and written["eval_items"] == 1


def test_a_full_refresh_gives_the_same_rows_and_no_release(grown: Grown) -> None:
    paths = LakePaths(grown.paths.home, grown.paths.workspace.with_name("full.duckdb"), grown.paths.project)
    done = build(paths, full_refresh=True)
    assert done.published is not None and not done.published.is_new
    assert count(paths, "_added.examples") == 23
    assert hashes(paths) == hashes(grown.paths)


def test_nothing_is_run_where_nothing_changed(grown: Grown, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("dbt was run")

    monkeypatch.setattr("lake.releases.build.run_dbt", fail)
    said: list[str] = []
    done = build(grown.paths, tag="again", say=said.append)
    assert said == ["nothing landed and nothing of the project changed since release 2 was built here"]
    assert done.published is not None and (done.published.release.number, done.published.is_new) == (2, False)
    assert done.funnel == grown.done.funnel and Refs(grown.paths.home).tags()["again"] == 2
    with pytest.raises(AssertionError, match="dbt was run"):
        build(grown.paths, full_refresh=True)
    with pytest.raises(AssertionError, match="dbt was run"):
        build(LakePaths(grown.paths.home, grown.paths.workspace.with_name("none.duckdb"), grown.paths.project))


def test_a_build_that_finds_equal_rows_takes_all_of_them_over(grown: Grown, tmp_path: Path) -> None:
    shutil.copytree(grown.paths.home, tmp_path / "lake")
    paths = places_in(tmp_path)
    # Amended to what it is: the record counts as changed, its example is made anew and is what it was.
    (tmp_path / "items.jsonl").write_text(json.dumps({"question": "How many?", "answer": "1"}) + "\n")
    for licence in ("MIT", "CC0-1.0"):
        land(
            [tmp_path / "items.jsonl"], "benchmark", "quiz", home=paths.home, license=licence, amend=True, root=tmp_path
        )
    done = build(paths)
    assert done.published is not None and not done.published.is_new
    assert {name: count(paths, f"_added.{name}") for name in EXTENDED} == dict.fromkeys(EXTENDED, 0)
    assert count(paths, "_lake.touched") == 1


@pytest.mark.parametrize("lost", ["refs/lineages", "memo/chat", "memo/contamination"])
def test_without_notes_or_results_everything_is_made_anew_and_equal(grown: Grown, tmp_path: Path, lost: str) -> None:
    shutil.copytree(grown.paths.home, tmp_path / "lake")
    shutil.rmtree(tmp_path / "lake" / lost)
    paths = places_in(tmp_path)
    run_dbt(paths)
    assert hashes(paths) == hashes(grown.paths)
    kernel = lost.removeprefix("memo/")
    assert count(paths, "_added.examples") == (0 if kernel == "contamination" else 23)
    if kernel != lost:
        assert count(paths, f"(select unnest(range(computed)) from memo_{kernel})") > 15


FAULTS = {
    "unique_train_sft_example_id": (
        "insert into _added.train_sft select * from _base.train_sft limit 1",
        "train/train_sft: 'example_id is unique' FAILED, 2 rows",
    ),
    "accepted_values_train_sft_kind__True__traces__web__synthetic": (
        "update _added.train_sft set kind = 'odd'",
        "train/train_sft: 'kind is a known value' FAILED",
    ),
    "relationships_train_sft_example_id__example_id__ref_examples_": (
        "insert into _removed.examples select example_id from _base.train_sft limit 1",
        "train/train_sft: 'example_id is in examples.example_id' FAILED, 1 rows",
    ),
    "each_example_has_exactly_one_decision": (
        "insert into _removed.decisions select example_id from _base.decisions limit 1",
        "",
    ),
}


@pytest.mark.parametrize("test", FAULTS)
def test_faults_among_new_rows_and_towards_taken_over_ones_are_found(grown: Grown, tmp_path: Path, test: str) -> None:
    pytest.importorskip("soda_duckdb", reason="the extra soda is not installed")
    # The catalogue is named after the file, and views name the catalogue.
    workspace = tmp_path / grown.paths.workspace.name
    shutil.copy(grown.paths.workspace, workspace)
    paths = LakePaths(grown.paths.home, workspace, grown.paths.project)
    environment = {"LAKE_HOME": paths.home, "LAKE_WORKSPACE": str(workspace)}
    arguments = ["test", "--select", test, "--profiles-dir", "lake"]
    assert dbt_process.run(arguments, paths.project, environment)[0] == 0
    fault, said = FAULTS[test]
    with duckdb.connect(workspace) as connection:
        connection.execute(fault)
    code, output = dbt_process.run(arguments, paths.project, environment)
    assert (code, "FAIL" in output) == (1, True), output
    if said:
        with pytest.raises(AuditError, match=said):
            audit(paths)
