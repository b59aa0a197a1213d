"""What makes which rows anew: each kind of edit to a project, with the extended models whose code it changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.contract import sync
from lake.errors import ContractError
from lake.init import init
from lake.kernels.project import kernels
from lake.releases import lineage
from lake.releases.base import audits
from lake.releases.lineage import WHOLE, Extended, extended_models, without_comments
from tests import dbt_process

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

MODELS = {
    "examples",
    "example_facts",
    "dropped_by_rule",
    "dropped_by_outcome",
    "decisions",
    "eval_items",
    "train_sft",
    "train_preference",
    "train_unpaired",
    "train_pretrain",
}


def manifest_of(project: Path) -> Any:
    """Parse a project as dbt does."""
    from dbt.contracts.graph.manifest import Manifest, WritableManifest

    code, output = dbt_process.run(["parse", "--profiles-dir", "lake", "--no-partial-parse"], project, {})
    assert code == 0, output[-4000:]
    return Manifest.from_writable_manifest(
        WritableManifest.read_and_check_versions(str(project / "target/manifest.json"))
    )


def models_of(project: Path, marks: dict[str, str] | None = None, variables: str = "{}") -> dict[str, Extended]:
    marks = marks or dict.fromkeys(kernels(project), "now")
    return {model.name: model for model in extended_models(manifest_of(project), marks, variables)}


def changed(before: dict[str, Extended], after: dict[str, Extended]) -> set[tuple[str, str]]:
    """Return model and kind of each hash that differs."""
    return {
        (name, kind)
        for name, model in after.items()
        for kind in {*model.code, *before[name].code}
        if model.code.get(kind) != before[name].code.get(kind)
    }


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("lineage") / "project"
    init(project)
    return project


@pytest.fixture(scope="module")
def before(plain: Path) -> dict[str, Extended]:
    return models_of(plain)


@pytest.fixture
def project(plain: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(plain, tmp_path / "project"))


def replaced(file: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(project: Path) -> None:
        text = (project / file).read_text("utf-8")
        assert old in text
        (project / file).write_text(text.replace(old, new, 1), "utf-8")

    return edit


def appended(file: str, line: str) -> Callable[[Path], None]:
    def edit(project: Path) -> None:
        with (project / file).open("a", encoding="utf-8") as opened:
            opened.write(line)

    return edit


CHATS = {("examples", "traces"), ("examples", "synthetic")}
EDITS = {
    "a comment in a model": (appended("models/curated/example_facts.sql", "-- it's a remark\n"), set()),
    "a comment in a macro": (
        replaced("transforms/macros/equality.sql", "{% macro is_blank", "{#- A 'remark'. -#}\n{% macro is_blank"), set()
    ),
    "a model": (
        replaced("models/curated/dropped_by_rule.sql", "then 'empty'", "then 'hollow'"), {("dropped_by_rule", WHOLE)}
    ),
    "a macro that one model calls": (
        replaced("transforms/macros/equality.sql", "not regexp_matches", "not not not regexp_matches"),
        {("example_facts", WHOLE)},
    ),
    "a macro that staging of every kind calls": (
        replaced("transforms/macros/identity.sql", "'example'", "'specimen'"),
        {*CHATS, ("examples", "web"), ("examples", "benchmark")},
    ),
    "a staging view": (
        replaced("models/staging/web/stg_web__documents.sql", "'document' as shape", "'page' as shape"),
        {("examples", "web")},
    ),
    "a view between extended models": (
        replaced("models/staging/contamination/int_contamination__excuses.sql", "'; '", "', '"),
        {("decisions", WHOLE)},
    ),
    "the registry of benchmarks": (
        appended("contracts/reference/benchmarks.csv", "a,b,c,question,,answer,,test,,,ours\n"),
        {("examples", "benchmark")},
    ),
    "the licences": (
        appended("contracts/reference/licences.csv", "mine-1.0,true,ours\n"), {("dropped_by_rule", WHOLE)}
    ),
    # What a threshold changes is seen by the rows of contamination_hits, which is a table.
    "a threshold": (replaced("contracts/reference/thresholds.csv", "listed_items,32", "listed_items,2"), set()),
    "a contract's version": (
        replaced("contracts/train/train_sft.yaml", "version: 1.0.0", "version: 1.0.1"), set()
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_makes_anew_what_it_decides(project: Path, before: dict[str, Extended], name: str) -> None:
    edit, expected = EDITS[name]
    edit(project)
    sync(project)
    assert changed(before, models_of(project)) == expected


def test_every_extended_model_stands_after_what_it_follows(before: dict[str, Extended]) -> None:
    assert before.keys() == MODELS
    placed = [*before]
    for model in before.values():
        assert all(placed.index(f) < placed.index(model.name) for f in model.follows if f in MODELS)
    assert set(before["examples"].code) == {WHOLE, "traces", "synthetic", "web", "benchmark"}


def test_kernels_variables_and_duckdb_make_anew_what_they_decide(
    plain: Path, before: dict[str, Extended], monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, marks = manifest_of(plain), dict.fromkeys(kernels(plain), "now")

    def after(marks: dict[str, str], variables: str = "{}") -> set[tuple[str, str]]:
        return changed(before, {m.name: m for m in extended_models(manifest, marks, variables)})

    assert after(marks) == set()
    assert after(marks | {"chat": "new"}) == CHATS
    assert after(marks | {"document_text": "new"}) == {("examples", "web")}
    assert after(marks | {"contamination": "new"}) == set()  # its results are rows of contamination_hits
    everything = {(name, WHOLE) for name in MODELS}
    assert after(marks, '{"a": 1}') == everything
    monkeypatch.setattr(lineage.duckdb, "__version__", "another")
    assert after(marks) == everything


def test_another_contract_is_audited_anew_and_others_are_not(project: Path) -> None:
    was = audits(project)
    replaced("contracts/train/train_sft.yaml", "version: 1.", "version: 9.")(project)
    now = audits(project)
    assert {name for name in now if now[name] != was[name]} == {"train_sft"}


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("train/train_sft", '"decisions"]', '"decisions", "dup_edges"]', "follows and does not read dup_edges"),
        ("train/train_sft", '"examples", "decisions"]', '"examples"]', "reads and does not follow decisions"),
        (
            "curated/example_facts",
            '    from {{ ref("examples") }}',
            '    from {{ ref("examples") }} where kind in (select kind from {{ ref("stg_web__records") }})',
            "reads and does not follow raw.amendments",
        ),
    ],
)
def test_a_model_that_reads_what_it_does_not_follow_is_refused(
    project: Path, file: str, old: str, new: str, said: str
) -> None:
    replaced(f"models/{file}.sql", old, new)(project)
    with pytest.raises(ContractError, match=said):
        models_of(project)


@pytest.mark.parametrize(
    ("code", "bare"),
    [
        ("select 1 -- one", "select 1"),
        ("select '-- no  comment' as a", "select '-- no  comment' as a"),
        ("select 'it''s -- none' -- one", "select 'it''s -- none'"),
        ('select "a--b" /* two\nlines */ from t', 'select "a--b" from t'),
        ("{#- it's {% x %} -#}\n  select 1\n\n", "select 1"),
        ("-- it's\nselect 'a'", "select 'a'"),
        ("select\n    a\n", "select a"),
    ],
)
def test_comments_are_no_code_and_strings_are(code: str, bare: str) -> None:
    assert without_comments(code) == bare


TEXTS = st.text(alphabet="ab-'{#}\n ", max_size=12)


@given(TEXTS, TEXTS)
def test_other_strings_are_other_code(one: str, other: str) -> None:
    first, second = (without_comments("select '" + text.replace("'", "''") + "' -- a") for text in (one, other))
    assert (first == second) == (one == other)
