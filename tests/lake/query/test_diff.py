"""`lake diff` counts what a reader of both releases would count, per table and slice."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake.cli import main
from lake.errors import NotFoundError
from lake.identity import H
from lake.query.diff import Change, as_text, diff
from lake.query.query import Lake
from lake.releases.publish import publish
from lake.storage import table
from lake.storage.refs import Refs, Release, TableVersion
from tests.effort import examples
from tests.small_lake import SmallLake, rows


@pytest.fixture
def small(tmp_path: Path) -> SmallLake:
    """Release 1 with e1 e2 e3 of the sources s1 s2 s0; release 2 without e1, e2 changed, e4 (s1) new."""
    made = SmallLake.make(tmp_path)
    made.build(rows(1, 2, 3), [("e000001", "i1", "hit")])
    publish(made.paths)
    made.build([*rows(2, text="other"), *rows(3, 4)], [("e000001", "i1", "hit")])
    publish(made.paths, tag="second")
    return made


def test_rows_added_removed_and_changed_are_counted_per_table_and_slice(small: SmallLake) -> None:
    lake = Lake(small.paths.home)
    lake.paths = small.paths
    assert diff(lake, 1, "second") == [
        Change("examples", None, None, 1, 1, 1),
        Change("examples", "source", "s1", 1, 1, 0),
        Change("examples", "source", "s2", 0, 0, 1),
    ]  # hits are equal, and not listed


def test_turned_round_what_was_added_is_removed(small: SmallLake) -> None:
    lake = Lake(small.paths.home)
    lake.paths = small.paths
    there, back = diff(lake, 1, 2), diff(lake, 2, 1)
    assert [(c.value, c.added, c.removed) for c in there] == [(c.value, c.removed, c.added) for c in back]
    assert diff(lake, 2, 2) == []
    assert as_text([]) == "no table differs"


def test_a_release_that_is_not_there_is_an_error(small: SmallLake) -> None:
    with pytest.raises(NotFoundError, match="no release 9"):
        diff(Lake(small.paths.home), 1, 9)


def test_the_command_prints_the_same_as_lines_and_as_json(small: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_HOME", small.paths.home)
    monkeypatch.chdir(small.paths.project)
    shown = CliRunner().invoke(main, ["diff", "1", "second"])
    assert (shown.exit_code, shown.output.splitlines()[:2]) == (
        0,
        ["examples: 1 added, 1 removed, 1 changed", "  source=s1: 1 added, 1 removed, 0 changed"],
    )
    (first, *_) = json.loads(CliRunner().invoke(main, ["diff", "1", "second", "--json"]).output)
    assert first == {"table": "examples", "column": None, "value": None, "added": 1, "removed": 1, "changed": 1}


# An example's source and the stage that dropped it, None: kept; as `decisions` has them.
DECISIONS = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(st.sampled_from(["s", "t"]), st.sampled_from([None, "exact", "rules"]))
)
SCHEMA = pa.schema([(name, pa.string()) for name in ("example_id", "source", "stage", "row_hash")])


def release(home: Path, number: int, decisions: dict[str, tuple[str, str | None]]) -> None:
    """Make a release of one table, whose rows replace those of the release before."""
    found = [[i, source, stage, H(i, source, stage or "")] for i, (source, stage) in decisions.items()]
    data = pa.table(list(zip(*found, strict=True)) or [[]] * 4, schema=SCHEMA)
    uri = str(home / "tables" / "decisions")
    state = table.replace(table.create(uri, SCHEMA), SCHEMA, table.write(uri, SCHEMA, data))
    digest = H(*sorted(row[3] for row in found))
    tables = {"decisions": TableVersion(state.version, len(found), digest, "1.0.0")}
    Refs(str(home)).add(Release(number, number - 1 or None, tables, {}, {}, None, "", "2026-01-01"))


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=DECISIONS, after=DECISIONS)
def test_every_changed_row_is_counted_where_the_second_release_has_it(
    tmp_path_factory: pytest.TempPathFactory, before: dict[str, tuple[str, str | None]],
    after: dict[str, tuple[str, str | None]],
) -> None:  # fmt: skip
    home = tmp_path_factory.mktemp("lake")
    release(home, 1, before)
    release(home, 2, after)
    expected: Counter[tuple[str | None, str | None, str]] = Counter()
    for i in {*before, *after}:
        if before.get(i) != after.get(i):
            what = "added" if i not in before else "removed" if i not in after else "changed"
            source, stage = after.get(i, before.get(i))  # type: ignore[misc]
            expected.update([(None, None, what), ("source", source, what), ("stage", stage, what)])
    found: Counter[tuple[str | None, str | None, str]] = Counter()
    for change in diff(Lake(home), 1, 2):
        for what in ("added", "removed", "changed"):
            found[change.column, change.value, what] += getattr(change, what)
    assert +found == expected
