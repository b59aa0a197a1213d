"""The models on real input: what the tables hold, and that nothing but the landed rows decides it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lake.identity import H
from tests.dbt_lake import DbtLake

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

RUNS = "traces/tau_bench/historical_trajectories/gpt-4o-airline.json"
PAIRS = "synthetic/llamafactory_sft_dpo/data/dpo_en_demo.json"
CODE = "synthetic/gpteacher/Toolformer"
PAGES = "web/udhr/udhr"
QUESTIONS = "eval/gsm8k/train.jsonl"


def land_all(lake: DbtLake, data: Path, order: list[str]) -> None:
    """Land the sources, each as it is, in some order."""
    landings = {
        "runs": (data / RUNS, "traces", "tau_bench", {"license": "MIT", "options": {"generator_model": "gpt-4o"}}),
        "pairs": (data / PAIRS, "synthetic", "dpo", {"license": "Apache-2.0"}),
        "code": (data / CODE, "synthetic", "gpteacher", {"license": "MIT"}),
        "pages": (data / PAGES, "web", "udhr", {"license": "CC-BY-NC-4.0"}),
        "questions": (data / QUESTIONS, "benchmark", "gsm8k", {"options": {"suite": "gsm8k", "split": "train"}}),
    }
    for name in order:
        path, kind, source, facts = landings[name]
        lake.land(path, kind, source, **facts)


@pytest.fixture(scope="module")
def cold(data: Path, tmp_path_factory: pytest.TempPathFactory) -> DbtLake:
    """Everything landed, then one build with empty memos."""
    lake = DbtLake(tmp_path_factory.mktemp("cold"))
    land_all(lake, data, ["runs", "pairs", "code", "pages", "questions"])
    lake.dbt("build")
    return lake


@pytest.fixture(scope="module")
def warm(data: Path, tmp_path_factory: pytest.TempPathFactory) -> DbtLake:
    """Landed the other way round, built in between, the benchmark last: the second build meets warm memos."""
    lake = DbtLake(tmp_path_factory.mktemp("warm"))
    land_all(lake, data, ["pages", "code", "pairs"])
    lake.dbt("build")
    assert lake.rows("select count(*) from dropped_as_contaminated") == [(0,)]
    land_all(lake, data, ["questions", "runs"])
    lake.dbt("build")
    return lake


def test_neither_order_of_landing_nor_memos_change_a_row(cold: DbtLake, warm: DbtLake) -> None:
    assert {"examples", "decisions", "funnel", "train_sft", "contamination_hits"} <= {*cold.digests()}
    assert cold.digests() == warm.digests()


def test_old_texts_are_not_computed_again_for_new_landings(warm: DbtLake) -> None:
    assert warm.computed()["chat"] == 200
    assert warm.computed()["document_text"] == 0


def test_a_build_with_nothing_new_computes_nothing_and_changes_nothing(warm: DbtLake, cold: DbtLake) -> None:
    warm.dbt("build")
    assert {*warm.computed().values()} == {0}
    assert cold.digests() == warm.digests()


def test_runs_train_by_their_reward(cold: DbtLake) -> None:
    counts = "count(*), sum(len(messages)), count(*) filter (outcome.reward = 1)"
    assert cold.rows(f"select {counts} from examples where source = 'tau_bench'") == [(200, 5308, 84)]
    query = "select count(*) from train_sft join examples using (example_id) where train_sft.source = 'tau_bench'"
    assert cold.rows(query) == [(84,)] == cold.rows(f"{query} and outcome.reward = 1")
    query = "select label, count(*) from train_unpaired where source = 'tau_bench' group by label order by label"
    assert cold.rows(query) == [(False, 116), (True, 84)]


def test_every_later_copy_is_dropped_for_a_kept_one(cold: DbtLake) -> None:
    ids = cold.rows("select count(*), count(distinct kept_id) from dropped_as_exact join examples using (example_id)")
    rows = cold.rows("select messages from examples where source = 'gpteacher'")
    assert cold.rows(
        "select count(*) from dropped_as_exact join examples using (example_id) where source = 'gpteacher'"
    ) == [(len(rows) - len({folded(messages) for (messages,) in rows}),)]
    assert ids[0][0] >= ids[0][1] > 0


def folded(messages: list[dict[str, object]]) -> str:
    """What makes two chats equal, worked out apart from the models."""
    import json
    import unicodedata

    def fold(value: object) -> object:
        return " ".join(unicodedata.normalize("NFC", value).split()) if isinstance(value, str) else value

    return json.dumps([[m["role"], fold(m["content"]), m["tool_calls"]] for m in messages], default=str)


def test_a_licence_that_is_not_allowed_drops_and_is_the_evidence(cold: DbtLake) -> None:
    query = (
        "select kept, stage, reason, evidence, count(*) from decisions where source = 'udhr' group by all order by 3"
    )
    *_, (undecodable,) = cold.rows("select count(*) from examples where problem = 'undecodable'")
    (licence, broken) = cold.rows(query)
    assert licence[:4] == (False, "rule", "licence_not_allowed", "CC-BY-NC-4.0")
    assert broken == (False, "rule", "undecodable", None, undecodable)


def test_a_page_without_a_codec_is_dropped_as_undecodable(cold: DbtLake) -> None:
    query = """
        select distinct stage, reason, text
        from decisions join examples using (example_id) where problem = 'undecodable'
    """
    assert cold.rows(query) == [("rule", "undecodable", "")]


def test_provenance_of_the_landing_reaches_the_example(cold: DbtLake) -> None:
    query = "select distinct provenance.generator_model, license from examples where source = 'tau_bench'"
    assert cold.rows(query) == [("gpt-4o", "MIT")]


def test_texts_hold_user_and_assistant_turns_and_nothing_else(cold: DbtLake) -> None:
    rows = cold.rows(
        "select text, prompt, response, messages from examples where source = 'tau_bench' order by example_id limit 50"
    )
    for text, prompt, response, messages in rows:
        spoken = {
            role: "\n\n".join(m["content"] for m in messages if m["role"] == role and m["content"])
            for role in ("user", "assistant")
        }
        assert (prompt, response) == (spoken["user"], spoken["assistant"])
        assert text == f"{prompt}\n\n{response}"
    assert all(system not in row[0] for row in rows for system in [row[3][0]["content"]])


def test_text_hashes_are_h_of_the_texts(cold: DbtLake) -> None:
    rows = cold.rows(
        "select text, text_hash, prompt, prompt_hash, response, response_hash from examples order by example_id"
    )
    for text, text_hash, prompt, prompt_hash, response, response_hash in random.Random(1).sample(rows, 500):
        assert text_hash == H(text)
        assert prompt_hash == (None if prompt is None else H(prompt))
        assert response_hash == (None if response is None else H(response))


def test_row_hashes_are_h_of_the_rows_in_the_contracts_order(cold: DbtLake) -> None:
    for table in cold.digests():
        query = f"""
            with part as (select * from {table} limit 300), bare as (select * exclude (row_hash) from part)
            select cast(to_json(bare) as varchar), row_hash from bare positional join (select row_hash from part)
        """
        rows = cold.rows(query)
        assert all(row_hash == H(row) for row, row_hash in rows), table
