"""Each test of tests/dbt is silent on a sound lake and shows the row of each fault that it is for.

dbt compiles the tests once; they run on tables made by hand, one sound world of a few rows, with one fault at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
import yaml

from tests.dbt_lake import ROOT, DbtLake

pytestmark = pytest.mark.integration
EXCUSE = 'gsm8k: texts of the lake that hold "one two": 12'
SOUND = f"""
insert into raw.traces (record_id, source) values ('r1', 's'), ('r2', 's');
insert into raw.web (record_id, source) values ('w1', 's');
insert into raw.synthetic (record_id, source) values ('y1', 's'), ('y2', 's');
insert into raw.benchmark (record_id, source) values ('b1', 'gsm8k');
insert into raw.rejects (reject_id, kind, source) values ('j1', 'traces', 's');
insert into raw.landings (kind, source, path, read, landed, already, rejected, skipped) values
    ('traces', 's', 'a.jsonl', 3, 2, 0, 1, '{{}}'), ('web', 's', 'w.txt', 4, 1, 1, 0, '{{"robots": 2}}'),
    ('synthetic', 's', 'y.jsonl', 2, 2, 0, 0, '{{}}'), ('benchmark', 'gsm8k', 'b.jsonl', 1, 1, 0, 0, '{{}}');
insert into examples (example_id, kind, source, shape, record_ids) values
    ('e1', 'traces', 's', 'chat', ['r1']), ('e2', 'traces', 's', 'chat', ['r2']),
    ('d1', 'web', 's', 'document', ['w1']), ('i1', 'benchmark', 'gsm8k', 'item', ['b1']),
    ('c1', 'synthetic', 's', 'chat', ['y1']), ('p1', 'synthetic', 's', 'pair', ['y2']);
insert into decisions (example_id, kind, source, shape, kept, uses, stage, reason, kept_id, evidence) values
    ('e1', 'traces', 's', 'chat', true, ['train_sft', 'train_unpaired'], null, null, null, '{EXCUSE}'),
    ('e2', 'traces', 's', 'chat', false, null, 'exact', 'exact_duplicate', 'e1', null),
    ('d1', 'web', 's', 'document', true, ['train_pretrain'], null, null, null, 'mmlu: 3; {EXCUSE}; piqa: 1'),
    ('i1', 'benchmark', 'gsm8k', 'item', true, ['eval_items'], null, null, null, null),
    ('c1', 'synthetic', 's', 'chat', false, null, 'contamination', 'contaminated', null, 'an item'),
    ('p1', 'synthetic', 's', 'pair', true, ['train_preference'], null, null, null, '{EXCUSE}');
insert into dropped_as_exact (example_id, reason, kept_id) values ('e2', 'exact_duplicate', 'e1');
insert into dropped_as_contaminated (example_id, reason) values ('c1', 'contaminated');
insert into train_sft (example_id) values ('e1');
insert into train_unpaired (example_id) values ('e1');
insert into train_pretrain (example_id) values ('d1');
insert into train_preference (example_id) values ('p1');
insert into eval_items (example_id) values ('i1');
insert into contamination_hits (example_id, item_id, benchmark, ngram, num_texts, is_protected, is_excused) values
    ('e1', 'i1', 'gsm8k', 'one two', 12, true, true), ('d1', 'i1', 'gsm8k', 'one two', 12, true, true),
    ('p1', 'i1', 'gsm8k', 'one two', 12, true, true), ('e1', 'i1', 'gsm8k', 'open', 1, false, false),
    ('c1', 'i1', 'gsm8k', 'three', 1, true, false);
insert into thresholds values ('contamination_listed_items', 64);
insert into funnel (kind, source, step, stage, rows_in, rows_kept, rows_dropped) values
    ('traces', 's', 1, 'rule', 2, 2, 0), ('traces', 's', 2, 'exact', 2, 1, 1),
    ('web', 's', 1, 'rule', 1, 1, 0), ('benchmark', 'gsm8k', 1, 'rule', 1, 1, 0),
    ('synthetic', 's', 1, 'rule', 2, 2, 0), ('synthetic', 's', 2, 'contamination', 2, 1, 1);
"""

FAULTS = {
    "a_decision_is_kept_with_uses_or_dropped_with_a_reason": [
        "update decisions set uses = null where example_id = 'e1'",
        "update decisions set uses = [] where example_id = 'e1'",
        "update decisions set stage = 'rule' where example_id = 'e1'",
        "update decisions set reason = 'empty' where example_id = 'e1'",
        "update decisions set kept_id = 'd1' where example_id = 'e1'",
        "update decisions set uses = ['train_sft'] where example_id = 'e2'",
        "update decisions set stage = null where example_id = 'e2'",
        "update decisions set reason = null where example_id = 'e2'",
    ],
    "benchmark_items_are_in_no_train_table": [
        "update decisions set uses = ['eval_items', 'train_sft'] where example_id = 'i1'",
        "update decisions set uses = ['train_pretrain'] where example_id = 'i1'",
    ],
    "each_example_has_exactly_one_decision": [
        "delete from decisions where example_id = 'e1'",
        "delete from examples where example_id = 'e1'",
        "insert into decisions select * from decisions where example_id = 'e1'",
    ],
    "every_example_is_made_of_landed_records": [
        "update examples set record_ids = ['nowhere'] where example_id = 'e1'",
        "update examples set record_ids = ['r1', 'nowhere'] where example_id = 'e1'",
        "update examples set record_ids = [] where example_id = 'e1'",
        "update examples set source = 'other' where example_id = 'e1'",
        "update examples set kind = 'web' where example_id = 'e1'",
    ],
    "every_kept_id_is_kept": [
        "update decisions set kept_id = 'c1' where example_id = 'e2'",
        "update decisions set kept_id = 'e2' where example_id = 'e2'",
        "update decisions set kept_id = 'nobody' where example_id = 'e2'",
    ],
    "every_landed_record_is_in_an_example": [
        *(f"insert into raw.{k} (record_id, source) values ('new', 's')" for k in ("traces", "web", "synthetic")),
        "insert into raw.benchmark (record_id, source) values ('new', 'gsm8k')",
        "update examples set record_ids = [] where example_id = 'e1'",
        "update examples set source = 'other' where example_id = 'e1'",
    ],
    "every_record_read_is_landed_already_there_rejected_or_skipped": [
        *(f"update raw.landings set {c} = {c} + 1 where kind = 'traces'" for c in ("read", "landed", "already")),
        "update raw.landings set rejected = rejected + 1 where kind = 'traces'",
        "update raw.landings set skipped = '{\"robots\": 1}' where kind = 'web'",
        "delete from raw.traces where record_id = 'r1'",
        "delete from raw.rejects",
        "delete from raw.benchmark",
        "update raw.traces set source = 'other'",
    ],
    "every_step_of_the_funnel_sums": [
        "update funnel set rows_dropped = 2 where kind = 'traces' and step = 2",
        "update funnel set rows_in = 3, rows_kept = 3 where kind = 'traces' and step = 1",
        "update funnel set rows_in = 3, rows_kept = 2 where kind = 'traces' and step = 2",
        "update funnel set rows_in = 1, rows_kept = 1, rows_dropped = 0 where kind = 'traces' and step = 2",
        "update funnel set rows_kept = 2, rows_dropped = 0 where kind = 'traces' and step = 2",
        "delete from funnel where kind = 'web'",
        "insert into funnel (kind, source, step, rows_in, rows_kept, rows_dropped) values ('web', 'new', 1, 1, 1, 0)",
    ],
    "every_text_was_searched_for_every_suite": [
        "insert into int_contamination__texts (text_hash, missing) values ('t1', ['a suite'])",
    ],
    "no_stage_drops_what_an_earlier_one_dropped": [
        f"insert into {model} (example_id) values ('{example}')"
        for model, example in (
            ("dropped_by_rule", "c1"),
            ("dropped_as_contaminated", "e2"),
            ("dropped_by_outcome", "e2"),
            ("dropped_as_exact", "c1"),
        )
    ],
    "no_threshold_asks_for_more_items_than_the_memo_keeps": [
        "update thresholds set value = 65",
    ],
    "no_train_row_has_a_hit_that_decisions_does_not_excuse": [
        "update contamination_hits set num_texts = 1 where example_id = 'e1' and is_protected",
        "update contamination_hits set num_texts = 2 where example_id = 'd1' and is_protected",
        "update contamination_hits set ngram = 'two' where example_id = 'e1' and is_protected",
        "update contamination_hits set benchmark = '8k' where example_id = 'e1' and is_protected",
        "update contamination_hits set is_excused = false where example_id = 'd1'",
        "update contamination_hits set is_protected = true where ngram = 'open'",
        "update decisions set evidence = null where example_id = 'p1'",
        "delete from decisions where example_id = 'e1'",
        *(
            f"insert into {table} (example_id) values ('c1')"
            for table in ("train_sft", "train_preference", "train_unpaired", "train_pretrain")
        ),
    ],
    "only_documents_train_a_base_model_and_only_items_are_evaluated": [
        "update decisions set uses = ['train_pretrain'] where example_id = 'e1'",
        "update decisions set uses = ['train_sft'] where example_id = 'd1'",
        "update decisions set uses = ['eval_items'] where example_id = 'e1'",
        "update decisions set uses = ['train_sft'] where example_id = 'i1'",
    ],
    "train_and_eval_tables_hold_exactly_what_decisions_give_them": [
        statement
        for table in ("train_sft", "train_preference", "train_unpaired", "train_pretrain", "eval_items")
        for statement in (f"delete from {table}", f"insert into {table} (example_id) values ('e2')")
    ],
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """SQL of each test, as dbt runs it."""
    lake = DbtLake(tmp_path_factory.mktemp("bite"))
    lake.dbt("compile", "--select", "test_type:singular")
    folder = lake.folder / "target/compiled/lakewright/tests/dbt"
    return {file.stem: file.read_text("utf-8") for file in folder.glob("*.sql")}


@pytest.fixture(scope="module")
def sound() -> duckdb.DuckDBPyConnection:
    """The tables that tests read, with the types of dbt's property files and the rows of `SOUND`."""
    connection = duckdb.connect()
    connection.execute("attach ':memory:' as workspace; use workspace; create schema raw")
    for file in (ROOT / "models").rglob("*.yml"):
        properties = yaml.load(file.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        tables = [("main", t) for t in properties.get("models", []) if "staging" not in file.parts]
        tables += [("raw", t) for s in properties.get("sources", []) if s["name"] == "raw" for t in s["tables"]]
        for schema, table in tables:
            columns = ", ".join(f'"{c["name"]}" {c["data_type"]}' for c in table.get("columns", []))
            if columns:
                connection.execute(f'create table {schema}."{table["name"]}" ({columns})')
    connection.execute("create table thresholds (name varchar, value double)")
    connection.execute("create table int_contamination__texts (text_hash varchar, missing varchar[])")
    connection.execute(SOUND)
    return connection


@pytest.fixture
def world(sound: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The sound tables, for one fault that is undone."""
    sound.execute("begin")
    yield sound
    sound.execute("rollback")


def test_no_test_is_left_out() -> None:
    assert {*FAULTS} == {file.stem for file in (ROOT / "tests/dbt").rglob("*.sql")}


def test_a_sound_lake_fails_no_test(compiled: dict[str, str], world: duckdb.DuckDBPyConnection) -> None:
    assert {name: world.sql(query).fetchall() for name, query in compiled.items()} == {name: [] for name in FAULTS}


@pytest.mark.parametrize(("name", "fault"), [(name, fault) for name, faults in FAULTS.items() for fault in faults])
def test_a_planted_fault_is_shown(
    compiled: dict[str, str], world: duckdb.DuckDBPyConnection, name: str, fault: str
) -> None:
    world.execute(fault)
    assert world.sql(compiled[name]).fetchall() != []
