"""Publishing: only what changed is written, content counts and not layout, and a release is whole or not there."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from pathlib import Path

import duckdb
import pytest

from lake.errors import AuditError, ConflictError, NotFoundError, StaleBuildError, UsageError
from lake.query.query import Lake
from lake.releases.publish import publish
from lake.storage.refs import Refs, Release
from lake.storage.table import append, snapshot
from tests.small_lake import SmallLake, rows, write_contract


@pytest.fixture
def small(tmp_path: Path) -> SmallLake:
    return SmallLake.make(tmp_path)


def read(small: SmallLake, ref: int | str | None = None) -> list[tuple[str, ...]]:
    return Lake(small.paths.home).sql("select example_id, source, text from examples order by all", release=ref).rows()


def test_a_release_holds_the_built_rows_and_says_what_they_are(small: SmallLake) -> None:
    small.build(rows(1, 2, 3), rows(7))
    done = publish(small.paths, tag="golden_v1")
    assert done.is_new and done.written == {"examples": 3, "hits": 1}
    assert read(small) == rows(1, 2, 3)
    assert read(small, "golden_v1") == rows(1, 2, 3)
    release = Lake(small.paths.home).release()
    assert (release.number, release.parent, release.tables["examples"].rows) == (1, None, 3)
    assert release.tables["hits"].contract_version == "1.0.0"
    assert set(release.raw_pins) >= {"traces", "web", "rejects"}


def test_the_digest_is_the_sum_of_both_halves_of_the_row_hashes(small: SmallLake) -> None:
    small.build(rows(1, 2))
    found = publish(small.paths).release.tables["examples"].digest
    texts = [
        json.dumps(dict(zip(["example_id", "source", "text"], r, strict=True)), separators=(",", ":"))
        for r in rows(1, 2)
    ]
    hashes = [hashlib.sha256(t.encode()).hexdigest()[:32] for t in texts]
    halves = [sum(int(h[i : i + 16], 16) for h in hashes) % 2**64 for i in (0, 16)]
    assert found == "".join(f"{half:016x}" for half in halves)


def test_new_rows_go_to_new_files_and_files_without_a_lost_row_stay(small: SmallLake) -> None:
    small.build(rows(*range(1000)))
    publish(small.paths)
    first = Lake(small.paths.home).release(1).snapshot("examples").files
    small.build(rows(*range(1010)))
    done = publish(small.paths)
    assert done.written["examples"] == 10
    second = Lake(small.paths.home).release(2).snapshot("examples").files
    assert set(first) < set(second) and len(second) == 2
    assert read(small) == rows(*range(1010)) and read(small, 1) == rows(*range(1000))
    small.build(rows(*range(1009)) + rows(1009, text="changed"))
    assert publish(small.paths).written["examples"] == 10  # the small file, once again
    assert set(first) < set(Lake(small.paths.home).release(3).snapshot("examples").files)
    assert read(small)[-1] == ("e001009", "s1", "changed 1009")


def test_content_is_equal_however_it_was_built(tmp_path: Path) -> None:
    in_steps, at_once = (
        SmallLake.make(tmp_path, "steps", tmp_path / "a"),
        SmallLake.make(tmp_path, "once", tmp_path / "b"),
    )
    for content in (rows(1, 2, 3, 4), rows(2, 3) + rows(9), rows(9, 1, 5, text="other") + rows(2)):
        in_steps.build(content, content[:1])
        publish(in_steps.paths)
    at_once.build(list(reversed(content)), content[:1])
    publish(at_once.paths)
    one, two = Lake(in_steps.paths.home).release(), Lake(at_once.paths.home).release()
    assert (one.number, two.number) == (3, 1)
    assert {n: (t.rows, t.digest) for n, t in one.tables.items()} == {
        n: (t.rows, t.digest) for n, t in two.tables.items()
    }
    assert read(in_steps) == read(at_once)


def test_equal_content_makes_no_new_release_and_can_be_tagged(small: SmallLake) -> None:
    small.build(rows(1, 2))
    publish(small.paths)
    small.build(list(reversed(rows(1, 2))))
    done = publish(small.paths, tag="again")
    assert not done.is_new and done.release.number == 1 and done.written == {"examples": 0, "hits": 0}
    assert Refs(small.paths.home).numbers() == [1] and Refs(small.paths.home).tags() == {"again": 1}


def test_a_row_that_stands_twice_is_published_twice(small: SmallLake) -> None:
    small.build(rows(1, 2))
    publish(small.paths)
    small.build(rows(1, 2, 2))
    publish(small.paths)
    assert read(small) == rows(1, 2, 2)
    small.build(rows(1, 2))
    publish(small.paths)
    assert read(small) == rows(1, 2)


@pytest.mark.integration
def test_many_small_files_are_joined(small: SmallLake) -> None:
    for n in range(20):
        small.build(rows(*range(n + 1)))
        publish(small.paths)
    assert len(Lake(small.paths.home).release().snapshot("examples").files) < 18
    assert read(small) == rows(*range(20)) and read(small, 7) == rows(*range(7))


def test_a_new_column_replaces_the_table_and_old_releases_stay_readable(small: SmallLake) -> None:
    small.build(rows(1, 2))
    publish(small.paths)
    names = ["example_id", "source", "text", "note", "row_hash"]
    properties = [{"name": n, "logicalType": "string", "required": n != "note"} for n in names]
    write_contract(small.paths.project, "examples", properties, "1.1.0")
    import duckdb

    small.build(rows(1, 2))
    with duckdb.connect(small.paths.workspace) as connection:
        connection.execute(
            "create or replace table main.examples as "
            "select example_id, source, text, 'n' as note, row_hash from main.examples"
        )
    done = publish(small.paths)
    assert done.release.tables["examples"].contract_version == "1.1.0"
    assert Lake(small.paths.home).sql("select note from examples").rows() == [("n",), ("n",)]
    assert Lake(small.paths.home).sql("select * from examples", release=1).columns == [
        "example_id",
        "source",
        "text",
        "row_hash",
    ]


@pytest.mark.parametrize(
    ("failures", "selection", "says"),
    [
        (1, "", "1 failures"),
        (None, "", "did not come to its end"),
        (0, "dbt build -s examples", "dbt build -s examples"),
    ],
)
def test_a_build_that_is_not_whole_is_refused(
    small: SmallLake, failures: int | None, selection: str, says: str
) -> None:
    small.build(rows(1))
    publish(small.paths)
    small.build(rows(1, 2), failures=failures, selection=selection)
    with pytest.raises(StaleBuildError, match=says):
        publish(small.paths)
    assert read(small) == rows(1)


def test_a_build_that_was_killed_once_it_had_pinned_is_refused(small: SmallLake) -> None:
    small.build(rows(1))
    with duckdb.connect(small.paths.workspace) as connection:
        connection.execute("update _lake.pins set version = 7 where name = 'traces'")
    with pytest.raises(StaleBuildError, match="pinned anew"):
        publish(small.paths)


def test_a_build_of_another_state_of_the_project_is_refused(small: SmallLake) -> None:
    small.build(rows(1))
    (small.paths.project / "models").mkdir()
    (small.paths.project / "models" / "new.sql").write_text("select 1 as x")
    with pytest.raises(StaleBuildError, match="changed since the last build"):
        publish(small.paths)


def test_a_table_that_lost_all_its_rows_needs_allow_empty(small: SmallLake) -> None:
    small.build(rows(1, 2), rows(5))
    publish(small.paths)
    small.build(rows(1, 2), [])
    with pytest.raises(AuditError, match=r"hits \(1 rows in release 1\).*--allow-empty hits"):
        publish(small.paths)
    with pytest.raises(UsageError, match="no published table"):
        publish(small.paths, allow_empty=["hit"])
    assert publish(small.paths, allow_empty=["hits"]).release.tables["hits"].rows == 0
    assert Lake(small.paths.home).sql("select * from hits").rows() == []


def test_what_a_dead_publisher_left_above_the_parent_is_in_no_release(small: SmallLake) -> None:
    small.build(rows(1, 2))
    release = publish(small.paths).release
    base = snapshot(release.uri("examples"))
    assert base is not None
    stray = Lake(small.paths.home).sql("select * from examples").to_arrow().cast(base.schema)
    append(release.uri("examples"), base.schema, stray)  # a publisher that died before its ref
    small.build(rows(1, 2, 3))
    assert publish(small.paths).written["examples"] == 1
    assert read(small) == rows(1, 2, 3) and read(small, 1) == rows(1, 2)


def test_a_build_beside_an_older_release_is_refused(tmp_path: Path) -> None:
    one = SmallLake.make(tmp_path, "one")
    two = SmallLake.make(tmp_path, "two")
    one.build(rows(1))
    two.build(rows(2))
    publish(one.paths)
    with pytest.raises(ConflictError, match="--rebase"):
        publish(two.paths)
    assert read(one) == rows(1)
    two.build(rows(1, 2))
    assert publish(two.paths).release.number == 2


def _publish(root: Path, name: str, barrier: object, results: object) -> None:
    small = SmallLake.make(root, name)
    barrier.wait()  # type: ignore[attr-defined]
    try:
        publish(small.paths)
        results.put((name, "won"))  # type: ignore[attr-defined]
    except ConflictError:
        results.put((name, "lost"))  # type: ignore[attr-defined]


@pytest.mark.integration
@pytest.mark.parametrize("attempt", range(3))
def test_of_several_publishers_on_one_parent_exactly_one_wins(tmp_path: Path, attempt: int) -> None:
    base = SmallLake.make(tmp_path, "base")
    base.build(rows(0))
    publish(base.paths)
    for n in (1, 2, 3):
        SmallLake.make(tmp_path, f"w{n}").build(rows(0, n), rows(n))
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(3), context.Queue()
    workers = [context.Process(target=_publish, args=(tmp_path, f"w{n}", barrier, results)) for n in (1, 2, 3)]
    for worker in workers:
        worker.start()
    outcome = dict(results.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join()
    (winner,) = [name for name, how in outcome.items() if how == "won"]
    assert Refs(base.paths.home).numbers() == [1, 2]
    assert read(base) == rows(0, int(winner[1:]))


def test_a_tag_does_not_move_without_force(small: SmallLake) -> None:
    small.build(rows(1))
    publish(small.paths, tag="gold")
    small.build(rows(1, 2))
    with pytest.raises(UsageError, match="names release 1 already"):
        publish(small.paths, tag="gold")
    assert Refs(small.paths.home).numbers() == [1]
    publish(small.paths, tag="gold", force=True)
    assert read(small, "gold") == rows(1, 2)


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "12", "a\n", "x" * 101, "é"])
def test_tags_are_plain_names(small: SmallLake, name: str) -> None:
    small.build(rows(1))
    with pytest.raises(UsageError, match="is not allowed"):
        publish(small.paths, tag=name)
    with pytest.raises(UsageError):
        Refs(small.paths.home).add_tag(name, 1)


def test_an_unknown_release_or_tag_is_named(small: SmallLake) -> None:
    lake = Lake(small.paths.home)
    with pytest.raises(NotFoundError, match="no release yet"):
        lake.release()
    small.build(rows(1))
    publish(small.paths)
    for ref in (2, "2", "gold"):
        with pytest.raises(NotFoundError):
            lake.release(ref)


def test_refs_on_an_object_store_are_put_if_absent() -> None:
    refs = Refs("memory://bucket/lake")
    release = Release(1, None, {}, {}, {}, None, "p", "2026-01-01T00:00:00+00:00", refs.home)
    refs.add(release)
    assert refs.load(1) == release and refs.numbers() == [1]
    with pytest.raises(ConflictError):
        refs.add(release)
    with pytest.raises(UsageError, match="conditional put"):
        Refs("ftp://host/lake")


def test_what_was_built_after_the_audit_is_not_published(tmp_path: Path) -> None:
    small = SmallLake.make(tmp_path)
    small.build(rows(1, 2))
    with pytest.raises(StaleBuildError, match="was audited as built by dbt's invocation another"):
        publish(small.paths, audited="another")
    assert Lake(small.paths.home).refs.numbers() == []
