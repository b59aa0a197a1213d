"""tau-bench, the recorded runs and the few-shot dialogues."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from transforms.chat.chats import units_of
from transforms.chat.formats import tau_bench


def test_two_hundred_runs_keep_every_message_and_their_reward(data: Path) -> None:
    runs = json.loads((data / "traces/tau_bench/historical_trajectories/gpt-4o-airline.json").read_bytes())
    units = [unit for run in runs for unit in units_of(json.dumps(run), "tau_bench")]
    assert len(units) == 200
    assert sum(len(u["messages"]) for u in units) == 5308
    roles = Counter(m["role"] for u in units for m in u["messages"])
    assert roles == {"system": 200, "user": 1490, "assistant": 2454, "tool": 1164}
    assert Counter(u["outcome"]["reward"] for u in units) == {1.0: 84, 0.0: 116}
    for run, unit in zip(runs, units, strict=True):
        assert [m["content"] for m in unit["messages"]] == [m["content"] for m in run["traj"]]
        said = [c["function"] for m in run["traj"] for c in m.get("tool_calls") or []]
        assert [
            {"name": c["name"], "arguments": c["arguments"]} for m in unit["messages"] for c in m.get("tool_calls", [])
        ] == said


def test_few_shot_dialogues_keep_every_turn(data: Path) -> None:
    files = sorted((data / "traces/tau_bench/few_shot_data").glob("*.jsonl"))
    rows = [json.loads(line) for f in files for line in f.read_text().splitlines()]
    assert len(rows) == 19 + 69
    for row in rows:
        (unit,) = tau_bench.units(row)
        text = row["messages_display"]
        assert [m["role"] for m in unit["messages"]] == re.findall(r"(?:^|\n)(user|assistant|tool): ", text)
        written = (f"{m['role']}: {m['content']}" for m in unit["messages"])
        assert "\n".join(written) == text
