"""A row is followed from file and line to decision, release, shard and step, and from a raw row forward."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lake.cli import main
from lake.config import LakePaths
from lake.errors import NotFoundError, UsageError
from lake.identity import H
from lake.query.query import Lake
from lake.query.trace import as_text, trace
from lake.releases.build import Built
from tests.lake.conftest import land_input, write_input

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]


def example_at(lake: Lake, line: int) -> tuple[str, str]:
    """Return record and example of a line of the chats."""
    record = lake.sql(f"select record_id from raw.traces where position = {line}").item()
    return record, H("example", record, "0")


def test_an_example_is_followed_back_to_its_line_and_forward_to_its_tables(built: tuple[LakePaths, Built]) -> None:
    lake = Lake(built[0].home)
    record, example = example_at(lake, 4)
    found = trace(lake, example[:8])
    assert (found["id"], found["type"], found["release"]) == (example, "example", 1)
    (raw,) = found["records"]
    assert (raw["record_id"], raw["path"], raw["position"], raw["license"]) == (record, "chats.jsonl", 4, "MIT")
    assert raw["options"] == {"generator_model": "m1"} and raw["landing"]["root"].endswith("/input")
    assert raw["payload_begins"].startswith('{"messages": [{"role": "user"')
    (one,) = found["examples"]
    assert one["provenance"]["generator_model"] == "m1" and one["decision"]["kept"] and one["tables"] == ["train_sft"]
    assert [(r["release"], r["tags"], r["kept"]) for r in one["releases"]] == [(1, ["first"], True)]
    assert (one["shards"], one["steps"], one["hits"]) == ([], [], [])


def test_a_record_leads_to_what_dropped_it_with_the_evidence(built: tuple[LakePaths, Built]) -> None:
    lake = Lake(built[0].home)
    ids = [example_at(lake, line) for line in (2, 3, 6)]
    dropped = [trace(lake, record)["examples"][0] for record, _ in ids]
    twins = [e for e in dropped if e["decision"]["stage"] == "exact"]
    (contaminated,) = [e for e in dropped if e["decision"]["stage"] == "contamination"]
    assert len(twins) == 1 and twins[0]["decision"]["kept_id"] in {ids[0][1], ids[1][1]}
    (edge,) = twins[0]["edges"]["dup_edges"]
    assert {edge["kept_id"], edge["dropped_id"]} == {ids[0][1], ids[1][1]}
    assert contaminated["example_id"] == ids[2][1] and contaminated["tables"] == []
    assert contaminated["hits"] and {h["benchmark"] for h in contaminated["hits"]} == {"farm"}


def test_a_reject_is_shown_with_its_bytes(built: tuple[LakePaths, Built]) -> None:
    lake = Lake(built[0].home)
    reject = lake.sql("select reject_id from raw.rejects").item()
    (found,) = trace(lake, reject)["rejects"]
    assert (found["path"], found["position"], found["payload_begins"]) == ("chats.jsonl", 5, '{"messages": [')
    assert found["counts"] and "rejected at chats.jsonl position 5" in as_text(trace(lake, reject))


def test_shards_and_steps_that_hold_the_row_are_listed(built: tuple[LakePaths, Built], tmp_path: Path) -> None:
    from training.cli import run_export

    lake = Lake(built[0].home)
    _, example = example_at(lake, 7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKE_HOME", built[0].home)
        run_export("train_sft", None, "jsonl", 2, tmp_path / "out", True)
    (shard,) = trace(lake, example)["examples"][0]["shards"]
    line = (tmp_path / "out" / shard["shard"]).read_text().splitlines()[shard["position"]]
    assert "step number 7 of baking" in line and (shard["release"], shard["table_name"]) == (1, "train_sft")


def test_without_a_release_the_raw_part_is_shown(tmp_path: Path) -> None:
    land_input(write_input(tmp_path / "input"), str(tmp_path / "lake"))
    lake = Lake(tmp_path / "lake")
    record, _ = example_at(lake, 1)
    found = trace(lake, record)
    assert found["release"] is None and found["examples"] == [] and found["records"][0]["position"] == 1
    assert "no release yet" in as_text(found)


@pytest.mark.parametrize(
    ("row_id", "error"), [("abc", UsageError), ("0" * 32, NotFoundError), ("../../etc", UsageError)]
)
def test_what_is_no_id_is_refused(built: tuple[LakePaths, Built], row_id: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        trace(Lake(built[0].home), row_id)


def test_the_command_prints_lines_and_json(built: tuple[LakePaths, Built], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_HOME", built[0].home)
    record, example = example_at(Lake(built[0].home), 4)
    text = CliRunner().invoke(main, ["trace", example], catch_exceptions=False).output
    for part in (
        f"record {record}",
        "chats.jsonl, position 4",
        "license: MIT",
        "decision: kept for train_sft",
        "release 1 [first]: kept",
    ):
        assert part in text
    done = CliRunner().invoke(main, ["trace", example, "--json"], catch_exceptions=False)
    assert json.loads(done.output)["id"] == example
