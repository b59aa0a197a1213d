"""dbt as people call it: what it pins, what it notes, and what can be published after it.

One story in the order of the tests, for each run of dbt costs seconds: an empty lake, a failed build, its retry, a
whole build that is published, and a fresh clone that builds only what it changed.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from lake import schema
from lake.config import LakePaths
from lake.dbt_plugin import RAW, prepare
from lake.errors import StaleBuildError, UsageError
from lake.kernels import project
from lake.landing.land import land
from lake.releases.publish import publish
from lake.releases.workspace import check_build, pins_digest
from lake.storage import table
from lake.storage.catalog import read_pins
from tests.dbt_lake import ROOT, DbtLake

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

PARTS = ("dbt_project.yml", "lake/profiles.yml", "models", "contracts", "transforms/macros", "tests/dbt")


def clone(folder: Path, source: Path = ROOT) -> Path:
    """Lay out a project as a checkout holds it, without anything built."""
    for part in PARTS:
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (source / part).is_dir() else shutil.copy
        copy(source / part, folder / part)
    return folder


def land_chats(lake: DbtLake, name: str, *numbers: int) -> None:
    file = lake.folder / "input" / f"{name}.jsonl"
    file.parent.mkdir(exist_ok=True)
    chats = [
        {"messages": [{"role": "user", "content": f"What is {n} + 1?"}, {"role": "assistant", "content": str(n + 1)}]}
        for n in numbers
    ]
    file.write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    lake.land(file, "traces", "sums")


def lake_paths_of(lake: DbtLake) -> LakePaths:
    return LakePaths(lake.home, lake.workspace, lake.project)


def check(lake: DbtLake) -> None:
    with lake.open() as connection:
        check_build(connection, lake_paths_of(lake))


def pins(lake: DbtLake) -> dict[str, int | None]:
    with lake.open() as connection:
        return read_pins(connection)


LAST = "select command, selection, failures from _lake.built order by rowid desc limit 1"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> DbtLake:
    folder = tmp_path_factory.mktemp("story")
    return DbtLake(folder, clone(folder / "project"))


def test_an_empty_lake_builds(lake: DbtLake) -> None:
    lake.dbt("build")
    assert lake.rows(LAST) == [("build", "", 0)]
    assert {name: rows for name, (rows, *_) in lake.digests().items() if rows} == {}
    assert {*pins(lake).values()} == {None}
    check(lake)


def test_a_failed_build_cannot_be_published(lake: DbtLake) -> None:
    land_chats(lake, "one", 1, 2)
    (lake.project / "tests/dbt/nothing_is_kept.sql").write_text("select 1 from {{ ref('decisions') }} where kept")
    lake.dbt("build", expect=1)
    ((command, selection, failures),) = lake.rows(LAST)
    assert (command, selection) == ("build", "") and failures > 0  # the test, and what it kept from running
    assert pins(lake)["traces"] is not None
    with pytest.raises(StaleBuildError, match=r"had \d+ failures"):
        check(lake)


def test_a_retry_keeps_the_pins_and_is_no_whole_build(lake: DbtLake) -> None:
    before = pins(lake)
    land_chats(lake, "two", 3)
    (lake.project / "tests/dbt/nothing_is_kept.sql").write_text("select 1 from {{ ref('decisions') }} where false")
    lake.dbt("retry")
    assert pins(lake) == before
    assert lake.rows("select count(*) from examples") == [(2,)]
    ((command, selection, failures),) = lake.rows(LAST)
    assert (command, failures) == ("build", 0) and "retry" in selection
    with pytest.raises(StaleBuildError, match="partial"):
        check(lake)


def test_a_whole_build_pins_the_newest_and_is_published(lake: DbtLake) -> None:
    lake.dbt("build")
    assert lake.rows("select count(*) from train_sft") == [(3,)]
    noted = lake.rows("select pins_digest, project_digest from _lake.built order by rowid desc limit 1")
    assert noted == [(pins_digest(pins(lake)), project.digest(lake.project))]
    published = publish(lake_paths_of(lake))
    assert (published.release.number, published.release.tables["train_sft"].rows) == (1, 3)
    assert dict(published.release.raw_pins) == pins(lake)


def test_a_fresh_clone_builds_what_it_changed_on_the_release_and_cannot_publish_it(lake: DbtLake) -> None:
    land_chats(lake, "three", 4)
    other = DbtLake(lake.folder, clone(lake.folder / "clone", lake.project), "clone/.lake/workspace.duckdb")
    # The workspace keeps its file name: it is the database of the sources, which dbt compares with the state.
    model = other.project / "models/train/train_sft.sql"
    model.write_text(model.read_text() + "where license is null\n")
    state = shutil.copytree(lake.folder / "target", lake.folder / "state")
    selection = ["state:modified+", "@state:modified,config.materialized:view", "resource_type:seed"]
    other.dbt("build", "--select", *selection, "--state", str(state))
    made = {name: other.rows(f"select count(*) from _added.{name}") for name in ("train_sft", "examples", "decisions")}
    assert made == {"train_sft": [(3,)], "examples": [(0,)], "decisions": [(0,)]}
    assert other.rows("select count(*) from train_sft") == [(3,)] == other.rows("select count(*) from raw.traces")
    assert pins(other) == pins(lake)
    with pytest.raises(StaleBuildError, match="partial"):
        publish(lake_paths_of(other))


def test_a_workspace_of_another_lake_is_refused(lake: DbtLake, tmp_path: Path) -> None:
    with (
        duckdb.connect(lake.workspace) as connection,
        pytest.raises(UsageError, match="was built from the lake"),
    ):
        prepare(connection, str(tmp_path / "other"), lake.project)


def test_raw_views_have_their_contracts_columns_before_anything_landed(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        prepare(connection, str(tmp_path / "lake"), ROOT)
        for name in RAW:
            view = connection.sql(f"from raw.{name}")
            assert view.columns == schema.arrow(ROOT, f"raw/{name}").names
            assert view.fetchall() == []


def test_a_folder_of_the_lake_that_looks_like_a_partition_changes_no_column(tmp_path: Path) -> None:
    home = tmp_path / "kind=other" / "source=else"
    (tmp_path / "page.md").write_text("# A page")
    land([tmp_path / "page.md"], "web", "pages", home=home)
    with duckdb.connect() as connection:
        prepare(connection, str(home), ROOT)
        assert connection.sql("select kind, source from raw.landings").fetchall() == [("web", "pages")]


def test_a_workspace_whose_pinned_files_were_collected_can_be_built_anew(tmp_path: Path) -> None:
    home = str(tmp_path / "lake")
    (tmp_path / "page.md").write_text("# A page")
    land([tmp_path / "page.md"], "web", "pages", home=home)
    with duckdb.connect(tmp_path / "one.duckdb") as connection:
        prepare(connection, home, ROOT)
        pinned = table.snapshot(f"{home}/raw/web")
        assert pinned is not None
        new = table.write(pinned.uri, pinned.schema, pq.read_table(pinned.files[0], schema=pinned.schema))
        table.commit(pinned, new, removes=pinned.files)  # as compaction does
        assert len(table.vacuum(pinned.uri, [], min_age_hours=0)) == 1
        prepare(connection, home, ROOT)
        with pytest.raises(duckdb.Error, match=r"raw\.web version 1, which this workspace has pinned, are gone"):
            connection.sql("from raw.web").fetchall()
        for (statement,) in connection.sql("select statement from _lake.fresh").fetchall():  # as a whole build does
            connection.execute(statement)
        assert connection.sql("select path from raw.web").fetchall() == [("page.md",)]
