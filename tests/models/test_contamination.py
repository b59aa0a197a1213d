"""Contamination and exact duplicates through landing and dbt, on real input."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dbt_lake import ROOT, DbtLake
from tests.effort import examples
from tests.transforms.slow_words import slow_fold
from transforms.text.words import folded

pytestmark = pytest.mark.integration
TABLES = ("contamination_hits", "dropped_as_contaminated", "decisions", "dup_edges", "train_sft", "train_preference")


@pytest.fixture(scope="module")
def lake(data: Path, tmp_path_factory: pytest.TempPathFactory) -> DbtLake:
    """Texts are built without a benchmark; GSM8K lands later and meets them."""
    lake = DbtLake(tmp_path_factory.mktemp("contamination"))
    lake.land(data / "synthetic/llamafactory_sft_dpo/data/dpo_en_demo.json", "synthetic", "dpo")
    lake.land(data / "synthetic/gpteacher", "synthetic", "gpteacher")
    lake.land(data / "traces/fastchat", "traces", "fastchat")
    lake.land(data / "web/react_native_docs/website", "web", "react_native_docs")
    lake.dbt("build")
    assert lake.rows("select asked, computed from memo_contamination") == [(0, 0)]
    assert lake.rows("select count(*) from contamination_hits") == [(0,)]
    lake.land(data / "eval/gsm8k", "benchmark", "gsm8k")
    lake.dbt("build")
    return lake


def test_five_train_questions_are_shown_with_the_rows_that_hold_them(lake: DbtLake) -> None:
    hits = lake.rows(
        "select list(item.question order by item.question) from contamination_hits as hits "
        "join examples as item on hits.item_id = item.example_id join examples as e on hits.example_id = e.example_id "
        "where hits.split = 'train' and part = 'question' and share = 1 and e.source = 'dpo' group by e.example_id"
    )
    assert sorted([q.split()[0] for q in row[0]] for row in hits) == [["For", "John", "Justin", "Two"], ["Michael"]]


def test_of_the_test_items_there_is_one_partial_hit(lake: DbtLake) -> None:
    hits = lake.rows(
        "select e.source, field, matched_ngrams, num_ngrams, hits.is_protected, is_excused, num_texts "
        "from contamination_hits as hits join examples as e using (example_id) where hits.split = 'test'"
    )
    assert hits == [("fastchat", "prompt", 8, 45, True, False, 1)]
    assert lake.rows("select count(*) from dropped_as_contaminated") == [(1,)]


def test_hits_on_open_splits_are_evidence_and_drop_nothing(lake: DbtLake) -> None:
    open_only = "select example_id from contamination_hits group by example_id having not bool_or(is_protected)"
    stages = lake.rows(f"select distinct stage from decisions where example_id in ({open_only})")
    assert stages
    assert ("contamination",) not in stages


def test_a_build_without_news_scans_nothing_and_changes_nothing(lake: DbtLake) -> None:
    before = lake.digests()
    asked, computed = lake.rows("select asked, computed from memo_contamination")[0]
    assert computed == asked > 10_000
    lake.dbt("build")
    # Nothing was published, so the texts are new ones again; what lacks no result is not asked for.
    assert lake.rows("select asked, computed, reused from memo_contamination") == [(0, 0, 0)]
    assert {t: before[t] for t in TABLES} == {t: n for t, n in lake.digests().items() if t in TABLES}


def test_a_new_text_meets_the_old_benchmark_and_a_new_benchmark_the_old_texts(
    lake: DbtLake, data: Path, tmp_path: Path
) -> None:
    texts = lake.rows("select count(distinct text_hash) from int_contamination__fields")[0][0]
    item = json.loads((data / "eval/gsm8k/test.jsonl").read_text("utf-8").splitlines()[7])
    page = tmp_path / "page.md"
    page.write_text(f"A page of mine.\n\n{item['question']}\n", "utf-8")
    lake.land(page, "web", "mine", root=tmp_path)
    lake.dbt("build")
    assert lake.rows("select asked, computed from memo_contamination") == [(1, 1)]
    query = "select reason from dropped_as_contaminated join examples using (example_id) where source = 'mine'"
    assert lake.rows(query) == [("contaminated",)]

    quiz = tmp_path / "quiz.jsonl"
    question = "Which little page of mine says that whoever reads it has read a page of mine to the end?"
    quiz.write_text(json.dumps({"question": question, "answer": "this"}) + "\n", "utf-8")
    lake.land(quiz, "benchmark", "quiz")
    lake.dbt("build")
    assert lake.rows("select asked, computed from memo_contamination") == [(texts + 1, texts + 1)]
    assert lake.rows("select distinct len(scanned) from memo.contamination order by all") == [(1,), (3,)]


def test_a_text_meets_more_suites_than_a_set_of_bits_holds(tmp_path: Path) -> None:
    lake = DbtLake(tmp_path)
    quiz = tmp_path / "quiz"
    quiz.mkdir()
    asked = [
        f"Who of the {number} sailors of ship number {number} has never seen a lighthouse at night?"
        for number in range(130)
    ]
    for number, question in enumerate(asked):  # a file of a suite nobody registered is a split of its own
        (quiz / f"part{number:03d}.jsonl").write_text(json.dumps({"question": question, "answer": "all"}) + "\n")
    lake.land(quiz, "benchmark", "quiz")
    for number, question in enumerate(
        (asked[0], asked[129], "Nobody asks anything here, and so there is no hit at all.")
    ):
        (tmp_path / f"page{number}.md").write_text(f"A page.\n\n{question}\n", "utf-8")
        lake.land(tmp_path / f"page{number}.md", "web", f"page{number}", root=tmp_path)
    lake.dbt("build")
    assert lake.rows("select count(*) from contamination_suites") == [(130,)]
    searched = "select text_hash, unnest(scanned) as suite from memo.contamination"
    assert lake.rows(f"select count(distinct suite), count(*) from ({searched}) group by text_hash") == [(130, 130)] * 3
    hits = "select distinct source, split from contamination_hits join examples using (example_id) order by all"
    assert lake.rows(hits.replace("split", "contamination_hits.split")) == [("page0", "part000"), ("page1", "part129")]


def records(lake: DbtLake, source: str, kind: str) -> dict[str, Any]:
    query = f"select record_id, payload from raw.{kind} where source = '{source}'"
    return dict(lake.rows(query))


def edges(lake: DbtLake, source: str) -> dict[str, str]:
    """Dropped record to kept record, within one source."""
    return dict(
        lake.rows(
            "select d.record_ids[1], k.record_ids[1] from dup_edges join examples as d on dropped_id = d.example_id "
            f"join examples as k on kept_id = k.example_id where d.source = '{source}' and k.source = '{source}'"
        )
    )


def test_exact_duplicates_of_gpteacher_are_the_rows_with_equal_fields(lake: DbtLake) -> None:
    groups: dict[tuple[tuple[str, str], ...], set[str]] = defaultdict(set)
    for record, payload in records(lake, "gpteacher", "synthetic").items():
        fields = {k: v for k, v in json.loads(payload).items() if k != "id"}  # a seed task's number is none of its text
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in fields.items()}
        groups[tuple((k, slow_fold(v)) for k, v in sorted(texts.items()))].add(record)
    expected = {frozenset(group) for group in groups.values() if len(group) > 1}
    groups_dropped: dict[str, set[str]] = defaultdict(set)
    for dropped, kept in edges(lake, "gpteacher").items():
        groups_dropped[kept] |= {dropped, kept}
    assert {frozenset(group) for group in groups_dropped.values()} == expected
    assert len(edges(lake, "gpteacher")) == sum(len(group) - 1 for group in expected) == 2371


def test_38_pairs_of_pages_are_byte_identical(lake: DbtLake) -> None:
    pages = records(lake, "react_native_docs", "web")
    assert len(pages) == 416
    same: dict[bytes, set[str]] = defaultdict(set)
    for record, payload in pages.items():
        same[payload].add(record)
    pairs = {frozenset(group) for group in same.values() if len(group) > 1}
    dropped = {frozenset(pair) for pair in edges(lake, "react_native_docs").items()}
    assert len(pairs) == 38
    assert pairs <= dropped
    folds = {record: slow_fold(payload.decode("utf-8-sig")) for record, payload in pages.items()}
    assert all(folds[a] == folds[b] for a, b in dropped)


def test_every_dropped_row_names_a_kept_one_with_no_fewer_uses(lake: DbtLake) -> None:
    query = (
        "select count(*) from dup_edges as e join decisions as k on e.kept_id = k.example_id "
        "where not k.kept or not is_prompt_equal or not is_response_equal"
    )
    assert lake.rows(query) == [(0,)]


def macro(name: str, *args: str) -> str:
    source = (ROOT / "transforms/macros/equality.sql").read_text("utf-8")
    return str(getattr(jinja2.Environment().from_string(source).module, name)(*args))


ODD = "a é\u0301\u1e9b\u0323\u00a0\u2009\u3000\u200b\u180e\t\n\x1c\x1f\x85\ufeff가"
SPACED = st.text(st.one_of(st.sampled_from(ODD), st.characters(codec="utf-8", exclude_characters="\0")), max_size=30)


@settings(max_examples=examples(100))
@given(st.lists(SPACED, min_size=1, max_size=20))
def test_sql_and_python_fold_alike_on_any_unicode(texts: list[str]) -> None:
    with duckdb.connect() as connection:
        rows = connection.execute(f"select {macro('folded', 't')} from (select unnest(?) as t)", [texts]).fetchall()
    assert [row[0] for row in rows] == [folded(t) for t in texts] == [slow_fold(t) for t in texts]
