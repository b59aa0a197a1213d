"""ShareGPT, FastChat, tau2-bench and Claude Code on real files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from transforms.chat.blocks import message
from transforms.chat.chats import units_of
from transforms.chat.formats import claude_code, fastchat, sharegpt, tau2_bench
from transforms.chat.units import NO_CHAT


def lines(path: Path) -> list[Any]:
    """Return the parsed lines of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_sharegpt_keeps_every_turn(data: Path) -> None:
    rows = json.loads((data / "traces/fastchat/data/dummy_conversation.json").read_bytes())
    for row in rows:
        (unit,) = sharegpt.units(row)
        names = {"human": "user", "gpt": "assistant"}
        assert unit["messages"] == [message(names[t["from"]], t["value"]) for t in row["conversations"]]


def test_sharegpt_tool_turns_become_calls_and_answers() -> None:
    row = {
        "conversations": [
            {"from": "human", "value": "hi"},
            {"from": "function_call", "value": '{"name": "f", "arguments": {"x": 1}}'},
            {"from": "observation", "value": "1"},
            {"from": "gpt", "value": "done"},
        ],
        "system": "s",
        "tools": '[{"name": "f"}]',
    }
    (unit,) = sharegpt.units(row)
    assert unit["messages"] == [
        message("system", "s"),
        message("user", "hi"),
        message("assistant", None, tool_calls=[{"id": None, "name": "f", "arguments": '{"x":1}'}]),
        message("tool", "1"),
        message("assistant", "done"),
    ]
    assert unit["tools"] == '[{"name":"f"}]'


def test_mt_bench_questions_are_user_turns_and_answers_assistant_turns(data: Path) -> None:
    judge = data / "traces/fastchat/fastchat/llm_judge/data"
    questions = lines(judge / "mt_bench/question.jsonl") + lines(judge / "vicuna_bench/question.jsonl")
    units = [u for q in questions for u in fastchat.units(q)]
    assert len(units) == 160
    assert [u["messages"] for u in units] == [[message("user", t) for t in q["turns"]] for q in questions]
    (asked,) = [q for q in questions if q["question_id"] == 115]
    (unit,) = units_of(json.dumps(asked), "fastchat")
    assert len(unit["messages"]) == 2
    assert unit["messages"][0]["content"].startswith("Some people got on a bus at the terminal.")
    for answer in lines(judge / "mt_bench/reference_answer/gpt-4.jsonl"):
        (unit,) = fastchat.units(answer)
        assert unit["messages"] == [message("assistant", t) for t in answer["choices"][0]["turns"]]
        assert unit["provenance"]["generator_model"] == "gpt-4"
    prompts = [u for p in lines(judge / "judge_prompts.jsonl") for u in fastchat.units(p)]
    assert [[m["role"] for m in u["messages"]] for u in prompts] == [["system", "user"]] * 8


def test_voice_runs_without_words_are_no_chat_and_text_runs_keep_whose_call_it_was(data: Path) -> None:
    folder = data / "traces/tau2_bench/tests/test_voice/test_interaction_metrics/testdata/experiment/simulations"
    for path in folder.glob("*.json"):
        (unit,) = tau2_bench.units(json.loads(path.read_bytes()))
        assert (unit["messages"], unit["problem"]) == (None, NO_CHAT)
    run = {
        "task_id": "1",
        "reward_info": {"reward": 1.0},
        "messages": [
            {"role": "user", "tool_calls": [{"id": "c", "name": "toggle", "arguments": {}, "requestor": "user"}]},
            {"role": "tool", "id": "c", "content": "on", "requestor": "user"},
            {"role": "assistant", "content": "good"},
        ],
    }
    (unit,) = tau2_bench.units(run)
    assert unit["outcome"]["reward"] == 1.0
    assert unit["messages"] == [
        message("user", None, tool_calls=[{"id": "c", "name": "toggle", "arguments": "{}"}]),
        message("tool", "on", tool_call_id="c", name="user"),
        message("assistant", "good"),
    ]


def test_claude_code_lines_are_turns_notes_or_unreadable(data: Path) -> None:
    folder = data / "traces/claude_code_log/test/test_data"
    rows = [(p.stem, row) for p in sorted(folder.glob("*.jsonl")) for row in lines(p)]
    assert len(rows) == 46
    read = [(name, units_of(json.dumps(row), "claude_code")[0]) for name, row in rows]
    counted = Counter((name, u.get("problem") or "turn") for name, u in read)
    assert counted == {
        ("edge_cases", "turn"): 12,
        ("edge_cases", "unreadable_shape"): 6,  # 42, [1], two texts and objects, two broken messages
        ("edge_cases", NO_CHAT): 1,
        ("representative_messages", "turn"): 11,
        ("representative_messages", NO_CHAT): 1,
        ("session_b", "turn"): 3,
        ("todowrite_examples", "turn"): 11,
        ("todowrite_examples", NO_CHAT): 1,
    }
    for _, unit in read:
        assert (unit.get("span") or {}).get("trace_id") is not None or unit.get("problem")


def test_a_sub_agents_lines_are_a_conversation_of_their_own() -> None:
    line = {
        "type": "assistant",
        "sessionId": "s",
        "uuid": "u",
        "timestamp": "2026-01-01T00:00:00.123Z",
        "message": {"id": "msg_1", "role": "assistant", "content": [{"type": "text", "text": "hi"}]},
    }
    side = line | {"isSidechain": True, "agentId": "a1"}
    assert [claude_code.units(x)[0]["span"]["trace_id"] for x in (line, side)] == ["s", "s/a1"]
    assert claude_code.units(line)[0]["span"]["turn_id"] == "msg_1"
