"""Langfuse exports: one trace with its observations, `{"trace": ..., "observations": [...]}`, or these in the trace.

The conversations are those of the generations (of agents, where there is no generation that says anything), put
together by `transforms.chat.threads`; one unit each. A side that no dialect fits (Python's repr of objects, say) is
left out, the other stays. Scores become the outcome: `reward` by that name, feedback by a name that holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transforms.chat.blocks import Message, UnreadableShape
from transforms.chat.calls import answers, given, parsed, system_turns, tools_text
from transforms.chat.formats.openai_chat import created, sampled
from transforms.chat.threads import threads
from transforms.chat.units import NO_CHAT, Unit, message_keys, outcome, time, unit

Call = tuple[dict[str, Any], list[Message]]


def units(record: object) -> list[Unit]:
    """Read one trace.

    Raises:
        UnreadableShape: it is no such trace.
    """
    if not isinstance(record, dict):
        raise UnreadableShape("no object")
    trace = record["trace"] if isinstance(record.get("trace"), dict) else record
    listed = record.get("observations", trace.get("observations"))
    if not isinstance(listed, list):
        raise UnreadableShape("no list 'observations'")
    observations = sorted((o for o in listed if isinstance(o, dict)), key=_started)
    calls = (
        _calls_of_type(observations, "GENERATION")
        or _calls_of_type(observations, "AGENT")
        or _calls_of_type([{**trace, "type": "TRACE"}], "TRACE")
    )
    facts = {"outcome": _scored(record, trace), "created_at": created(trace)}
    chats = [unit(turns, **facts, **_call_facts(turns, calls)) for turns in threads([turns for _, turns in calls])]
    return chats or [unit(None, problem=NO_CHAT, **facts)]


def _started(observation: Mapping[str, Any]) -> tuple[str, str]:
    """Order observations by their start, then id."""
    when = time(observation.get("startTime", observation.get("start_time")))
    return when.isoformat() if when else "", str(observation.get("id"))


def _calls_of_type(observations: list[dict[str, Any]], kind: str) -> list[Call]:
    """Return the observations of a type that hold messages, with them."""
    of_kind = [(o, _whole_call(o)) for o in observations if o.get("type") == kind]
    return [(o, turns) for o, turns in of_kind if turns]


def _whole_call(observation: Mapping[str, Any]) -> list[Message]:
    """Return what was given and answered; OpenAI's responses repeat the instructions that the request left out."""
    asked, answered = observed(observation, "input"), observed(observation, "output")
    output = parsed(observation.get("output"))
    if isinstance(output, dict) and output.get("object") == "response" and all(m["role"] != "system" for m in asked):
        asked = [*system_turns(output), *asked]
    return [*asked, *answered]


def observed(observation: Mapping[str, Any], side: str) -> list[Message]:
    """Return the messages of one side, `input` or `output`; an empty list where no dialect fits."""
    try:
        if side == "input":
            return given(observation.get("input"))
        return [m for answer in answers(observation.get("output")) for m in answer]
    except UnreadableShape:
        return []


def _call_facts(turns: list[Message], calls: list[Call]) -> dict[str, Any]:
    """Return the tools and the model of a conversation: those of the last call that shares its first message."""
    first = message_keys(turns[:1])
    own = [o for o, t in calls if message_keys(t[:1]) == first] or [o for o, _ in calls]
    metadata = [parsed(o.get("metadata")) for o in own]
    tools = (tools_text(parsed(o.get("input")), m, parsed(o.get("output"))) for o, m in zip(own, metadata, strict=True))
    models = [{"model": o.get("model"), **_parameters(o)} for o in reversed(own)]
    return {"tools": next((t for t in tools if t), None), "provenance": sampled(*models)}


def _parameters(observation: Mapping[str, Any]) -> dict[str, Any]:
    """Return a generation's sampling parameters; Langfuse may write them as text."""
    given_ = parsed(observation.get("modelParameters", observation.get("model_parameters")))
    named = (
        {k: _parsed_number(given_.get(k)) for k in ("temperature", "top_p", "seed")} if isinstance(given_, dict) else {}
    )
    return {k: v for k, v in named.items() if v is not None}


def _parsed_number(value: object) -> object:
    """Return a number that may stand as text."""
    if not isinstance(value, str):
        return value
    try:
        return int(value) if value.isdigit() and len(value) < 19 else float(value)
    except ValueError:
        return None


def _scored(record: Mapping[str, Any], trace: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the outcome that a trace's scores say."""
    scores = trace.get("scores", record.get("scores"))
    reward = feedback = None
    for score in scores if isinstance(scores, list) else []:
        name = str(score.get("name")).lower() if isinstance(score, dict) else ""
        if name == "reward":
            reward = score.get("value")
        elif "feedback" in name:
            feedback = score.get("comment") or score.get("stringValue") or score.get("value")
    return outcome(reward, feedback)
