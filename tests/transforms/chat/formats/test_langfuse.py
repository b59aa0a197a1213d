"""Langfuse exports against the ChatML that Langfuse's own normaliser expects of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from transforms.chat.formats import langfuse

PAIRS = "traces/langfuse/worker/src/__tests__/chatml/framework-traces"

# Where we differ on purpose: (pair, first digits of the observation, side) and why.
OURS_IS_RIGHT = {
    ("google-adk-2025-08-28", "bded6778", "input"): "a function's response is a tool's turn, not the user's",
    ("langgraph-js-2025-10-30", "0856a182", "input"): "a role that is a tool's name is the role tool",
    ("pydantic-ai-2025-06-06", "5cb389a3", "output"): "the choice holds a message that the expectation leaves as JSON",
    ("pydantic-ai-tools-2025-06-06", "5cb389a3", "output"): "the same trace under another name",
}
# Where the messages are Python's repr of objects: nobody reads them; the expectation holds tools and no message.
NOBODY_READS = {("agno-2025-06-11", "b38a82ea", "input"), ("agno-2025-06-11", "ca136de4", "input")}
TYPES = ("GENERATION", "AGENT")


def pairs(folder: Path) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return name, trace and expected ChatML of each pair."""
    names = sorted(p.name.removesuffix(".chatml.json") for p in folder.glob("*.chatml.json"))
    return [
        (
            n,
            json.loads((folder / f"{n}.trace.json").read_bytes()),
            json.loads((folder / f"{n}.chatml.json").read_bytes()),
        )
        for n in names
    ]


def expected(turns: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return ChatML turns in our vocabulary: Gemini's model is the assistant, blocks are texts and calls."""
    return [one_expected(t) for t in turns]


def one_expected(turn: dict[str, Any]) -> tuple[Any, ...]:
    """Return role, text, calls and id of one ChatML turn."""
    content, calls = turn.get("content"), [(c["name"], json.loads(c["arguments"])) for c in turn.get("tool_calls", [])]
    if isinstance(content, list):
        calls += [(b["name"], b["input"]) for b in content if b["type"] == "tool_use"]
        content = "\n".join(b["text"] for b in content if b["type"] == "text")
    role = {"model": "assistant"}.get(turn.get("role", ""), turn.get("role"))
    return role, content or "", calls, turn.get("tool_call_id")


def ours(turns: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the same of our messages."""
    return [
        (
            m["role"],
            m["content"] or "",
            [(c["name"], json.loads(c["arguments"])) for c in m.get("tool_calls", [])],
            m.get("tool_call_id"),
        )
        for m in turns
    ]


def test_messages_are_those_of_the_expected_chatml(data: Path) -> None:
    compared, differing = 0, {}
    for name, trace, chatml in pairs(data / PAIRS):
        observations = {o["id"]: o for o in trace["observations"] if o["type"] in TYPES}
        for observation in observations.keys() & chatml.keys():
            for side, wanted in chatml[observation].items():
                if not wanted["success"]:
                    continue
                compared += 1
                got = ours(langfuse.observed(observations[observation], side))
                if got != expected(wanted["data"]):
                    differing[(name, observation[:8], side)] = got
    assert compared == 66
    assert set(differing) == set(OURS_IS_RIGHT) | NOBODY_READS
    assert all(got == [] for key, got in differing.items() if key in NOBODY_READS)


def test_where_the_other_normaliser_reads_nothing_we_read_text_and_prompts(data: Path) -> None:
    read = {}
    for name, trace, chatml in pairs(data / PAIRS):
        for o in trace["observations"]:
            for side, wanted in chatml.get(o["id"], {}).items() if o["type"] == "GENERATION" else []:
                if not wanted["success"]:
                    read[(name, o["id"][:8], side)] = [m["role"] for m in langfuse.observed(o, side)]
    assert read == {
        ("agno-2025-06-11", "1f883bb9", "input"): ["system", "user"],
        ("agno-2025-06-11", "1f883bb9", "output"): ["assistant"],
        ("agno-2025-06-11", "fc7f61b5", "input"): ["system", "user", "assistant", "tool"],
        ("agno-2025-06-11", "fc7f61b5", "output"): ["assistant"],
        ("autogen-2025-06-06", "83517f90", "input"): ["system", "user"],
        ("autogen-2025-06-06", "83517f90", "output"): ["assistant"],
        ("claude-agent-2025-12-22", "2cc13e77", "input"): [],  # {"content": "role"}: a bug of the instrumentation
        ("claude-agent-2025-12-22", "371496f7", "input"): [],
        ("claude-agent-2025-12-22", "e9aac170", "input"): ["user"],
        ("claude-agent-2025-12-22", "f8e8f040", "input"): [],
        ("crewai-2025-07-11", "231c4396", "output"): ["assistant"],
        ("llamaindex-2025-06-05", "7ca8b22f", "input"): ["user"],
        ("llamaindex-2025-06-05", "7ca8b22f", "output"): ["assistant"],
        ("vercel-aisdk-2025-11-17", "1dc67681", "input"): ["user"],
    }


# Per trace, the roles of its conversations: s(ystem), u(ser), a(ssistant), t(ool); counted by hand from the exports.
CONVERSATIONS = {
    "autogen-2025-06-06": ["sua"],
    "beeai-2025-08-01": ["suaa"],
    "claude-agent-2025-12-22": ["uaaaa"],
    "csharp-agent-with-gemini-2026-03-09": ["uataa"],
    "google-adk-2025-08-28": ["suata"],
    "langgraph-js-2025-10-30": ["uata"],
    "langgraph-python-2025-08-22": ["uuata"],
    "microsoft-agent-2025-12-17": ["uata"],
    "openai-agents-2025-09-30": ["suata"],
    "pydantic-ai-tools-2025-12-04": ["suatttaua", "sua"],
    "vercel-aisdk-2025-11-17": ["ua"],
    "vertex-ai-2025-08-01": ["ua"],
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_calls_of_a_trace_become_its_conversations(data: Path, name: str) -> None:
    trace = json.loads((data / PAIRS / f"{name}.trace.json").read_bytes())
    units = langfuse.units(trace)
    assert ["".join(m["role"][0] for m in u["messages"]) for u in units] == CONVERSATIONS[name]
    trace["observations"].reverse()
    assert langfuse.units(trace) == units


def test_scores_become_the_outcome() -> None:
    generation = {"id": "1", "type": "GENERATION", "input": "hi", "output": "ho", "startTime": "2026-01-01T00:00:00Z"}
    scores = [{"name": "reward", "value": 0.5}, {"name": "user-feedback", "value": 1, "comment": "good"}]
    (unit,) = langfuse.units({"trace": {"id": "t", "scores": scores}, "observations": [generation]})
    assert unit["outcome"] == {"reward": 0.5, "feedback": "good", "verdict": None}
