"""Traces landed span by span and line by line, put together by a real dbt run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lake.identity import H
from tests.dbt_lake import DbtLake

pytestmark = pytest.mark.integration
STAGED = "stg_traces__spans stg_traces__chats"
UNION = "(select * from stg_traces__chats union all by name select * from stg_traces__spans)"


def call_span(span: str, second: int, asked: list[tuple[str, str]], answer: str, parent: str | None = None) -> Any:
    """Return an OpenInference span of a model call."""
    attributes: dict[str, Any] = {"openinference.span.kind": "LLM", "llm.model_name": "m"}
    for i, (role, text) in enumerate(asked):
        attributes |= {f"llm.input_messages.{i}.message.role": role, f"llm.input_messages.{i}.message.content": text}
    attributes |= {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": answer}
    return {
        "context": {"trace_id": "t1", "span_id": span},
        "parent_id": parent,
        "start_time": f"2026-01-01T00:00:{second:02}Z",
        "end_time": f"2026-01-01T00:00:{second + 1:02}Z",
        "attributes": attributes,
    }


TALK = [("system", "s"), ("user", "one")]
FIRST = call_span("a", 1, TALK, "ONE")
SECOND = call_span("b", 3, [*TALK, ("assistant", "ONE"), ("user", "two")], "TWO")
CRITIC = call_span("c", 5, [("system", "critic"), ("user", "ONE")], "good")
TOOL = {"context": {"trace_id": "t1", "span_id": "d"}, "attributes": {"openinference.span.kind": "TOOL"}}
STALE = SECOND | {"end_time": "2026-01-01T00:00:03.5Z", "attributes": SECOND["attributes"] | {"x": 1}}
STALE["attributes"] = STALE["attributes"] | {"llm.output_messages.0.message.content": "TW"}
SPANS = [STALE, FIRST, SECOND, CRITIC, TOOL]


def write(path: Path, rows: list[Any]) -> Path:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


@pytest.fixture(scope="module")
def built(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[DbtLake, DbtLake]:
    """The same spans and session lines, in two orders and cuttings."""
    lakes = []
    for name, rows in (("forth", SPANS), ("back", SPANS[::-1])):
        lake = DbtLake(tmp_path_factory.mktemp(name))
        logs = sorted((data / "traces/claude_code_log/test/test_data").glob("*.jsonl"))
        if name == "back":
            for i, row in enumerate(rows):
                lake.land(write(lake.folder / f"in{i}.jsonl", [row]), "traces", "app", root=lake.folder)
            logs = logs[::-1]
        else:
            lake.land(write(lake.folder / "in.jsonl", rows), "traces", "app", root=lake.folder)
        for log in logs:
            lake.land(log, "traces", "code", root=log.parent)
        lake.dbt("run", "--select", *(f"+{m}" for m in STAGED.split()))
        lakes.append(lake)
    return lakes[0], lakes[1]


def test_order_and_cutting_of_the_arrival_change_nothing(built: tuple[DbtLake, DbtLake]) -> None:
    forth, back = (lake.rows(f"select * from {UNION} order by example_id") for lake in built)
    assert len(forth) > 10
    assert forth == back


def test_a_trace_is_its_conversations_and_the_latest_content_of_a_span_counts(
    built: tuple[DbtLake, DbtLake],
) -> None:
    rows = built[0].rows(
        "select example_id, list_transform(messages, lambda m: m.content), len(record_ids), provenance.generator_model,"
        " created_at::varchar from stg_traces__spans where source = 'app' order by len(messages) desc"
    )
    assert [r[1] for r in rows] == [["s", "one", "ONE", "two", "TWO"], ["critic", "ONE", "good"]]
    assert [r[2] for r in rows] == [4, 1]  # the first answers for the tool's span and the content that was replaced
    assert rows[0][0] == H("example", "traces", "app", "t1")
    assert {r[3] for r in rows} == {"m"}


def test_a_session_is_one_conversation_in_the_order_of_its_lines(built: tuple[DbtLake, DbtLake], data: Path) -> None:
    log = data / "traces/claude_code_log/test/test_data/representative_messages.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    messages_logged = [line["message"] for line in lines if line["type"] in ("user", "assistant")]
    ((messages,),) = built[0].rows(
        f"select messages from stg_traces__spans where example_id = '{H('example', 'traces', 'code', 'test_session')}'"
    )
    assert len(messages) == len(messages_logged) == 11
    texts = ["".join(b.get("text") or b.get("content") or "" for b in m["content"]) for m in messages_logged]
    assert [m["content"] or "" for m in messages] == texts
    assert Counter(m["role"] for m in messages) == {"user": 4, "assistant": 5, "tool": 2}


def test_no_landed_record_vanishes_and_none_is_claimed_twice(built: tuple[DbtLake, DbtLake]) -> None:
    for lake in built:
        landed = lake.rows("select count(*) from raw.traces")[0][0]
        assert landed == 46 + len(SPANS)
        claimed = lake.rows(f"select count(*), count(distinct r) from (select unnest(record_ids) as r from {UNION})")
        assert claimed == [(landed, landed)]


def test_blocks_of_one_assistant_turn_are_joined(tmp_path: Path) -> None:
    def line(uuid: str, second: int, role: str, content: Any, turn: str | None = None) -> Any:
        head = {"sessionId": "s", "uuid": uuid, "timestamp": f"2026-01-01T00:00:{second:02}Z", "type": role}
        return head | {"message": {"role": role, "content": content} | ({"id": turn} if turn else {})}

    call = {"type": "tool_use", "name": "f", "input": {}}
    rows = [
        line("1", 1, "user", "go"),
        line("2", 2, "assistant", [{"type": "thinking", "thinking": "hm"}], "m1"),
        line("3", 3, "assistant", [call | {"id": "c1"}], "m1"),
        line("4", 4, "user", [{"type": "tool_result", "tool_use_id": "c1", "content": "r1"}]),
        line("5", 5, "assistant", [call | {"id": "c2"}], "m1"),
        line("6", 6, "user", [{"type": "tool_result", "tool_use_id": "c2", "content": "r2"}]),
        line("7", 7, "assistant", [{"type": "text", "text": "done"}], "m2"),
    ]
    lake = DbtLake(tmp_path)
    lake.land(write(tmp_path / "log.jsonl", rows), "traces", "code", root=tmp_path)
    lake.dbt("run", "--select", "+stg_traces__spans")
    ((messages,),) = lake.rows("select messages from stg_traces__spans")
    assert [(m["role"], m["content"], m["reasoning"], [c["id"] for c in m["tool_calls"] or []]) for m in messages] == [
        ("user", "go", None, []),
        ("assistant", None, "hm", ["c1", "c2"]),
        ("tool", "r1", None, []),
        ("tool", "r2", None, []),
        ("assistant", "done", None, []),
    ]
