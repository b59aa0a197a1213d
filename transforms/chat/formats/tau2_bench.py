"""tau2-bench simulations: `messages` of text runs, `ticks` of voice runs, `reward_info.reward`.

Messages name their `requestor`: in the telecom domain the user calls tools, too. Those calls and their results stay
where they are, the results under the name `user`, so that a trainer can tell whose they were. Ticks as published hold
no words; a run of such ticks is `no_chat`. Barres et al., "tau2-bench", 2025.
"""

from __future__ import annotations

from typing import Any

from transforms.chat.blocks import Message, UnreadableShape
from transforms.chat.formats.openai_chat import created, sampled
from transforms.chat.turns import turns
from transforms.chat.units import NO_CHAT, Unit, outcome, unit


def units(record: object) -> list[Unit]:
    """Read one simulation.

    Raises:
        UnreadableShape: it is no such simulation.
    """
    if not isinstance(record, dict):
        raise UnreadableShape("no object")
    info = record.get("reward_info")
    facts: dict[str, Any] = {
        "created_at": created(record),
        "outcome": outcome(info.get("reward") if isinstance(info, dict) else None),
        "provenance": sampled(record),
    }
    if isinstance(record.get("messages"), list) and record["messages"]:
        return [unit([m for raw in record["messages"] for m in _tau2_turn(raw)], **facts)]
    if not isinstance(record.get("ticks"), list):
        raise UnreadableShape("neither 'messages' nor 'ticks'")
    spoken = [m for tick in record["ticks"] for m in _tick_turns(tick)]
    return [unit(spoken, **facts) if spoken else unit(None, problem=NO_CHAT, **facts)]


def _tau2_turn(raw: object) -> list[Message]:
    """Read one message; several tool results may stand in one."""
    if isinstance(raw, dict) and isinstance(raw.get("tool_messages"), list):
        return [m for inner in raw["tool_messages"] for m in _tau2_turn(inner)]
    read = turns(raw)
    if isinstance(raw, dict) and read[0]["role"] == "tool":
        named = {"tool_call_id": raw.get("id"), "name": "user" if raw.get("requestor") == "user" else None}
        read[0] |= {k: v for k, v in named.items() if isinstance(v, str) and k not in read[0]}
    return read


def _tick_turns(tick: object) -> list[Message]:
    """Return what was said in one tick of a voice run."""
    chunks = [tick.get(k) for k in ("user_chunk", "agent_chunk")] if isinstance(tick, dict) else []
    return [m for c in chunks if isinstance(c, dict) and (c.get("content") or c.get("tool_calls")) for m in turns(c)]
