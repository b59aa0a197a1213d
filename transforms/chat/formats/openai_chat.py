"""OpenAI chat messages: `{"messages": [...], "tools": [...]}`, or the bare list of messages. One record is one chat.

Turns may be of any dialect (`transforms.chat.turns`): Anthropic blocks under `messages` are common, LangChain's and
Vercel's occur.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lake.record_keys.chats import CALL_CREATED_KEYS
from transforms.chat.blocks import Message, UnreadableShape
from transforms.chat.calls import system_turns, tools_text
from transforms.chat.turns import all_turns
from transforms.chat.units import Unit, outcome, provenance, time, unit


def units(record: object) -> list[Unit]:
    """Read one chat.

    Raises:
        UnreadableShape: it is no such chat.
    """
    if isinstance(record, list):
        record = {"messages": record}
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
        raise UnreadableShape("no list 'messages'")
    return [chat(record, all_turns(record["messages"]))]


def chat(record: Mapping[str, Any], turns: list[Message]) -> Unit:
    """Build the unit of a chat from its turns and from what stands beside them.

    Args:
        record: the object that may hold `system`, `tools`, `model`, sampling parameters, `reward`, a time.
        turns: its turns, already read.

    Raises:
        UnreadableShape: there is no turn.
    """
    if not turns:
        raise UnreadableShape("no turn")
    return unit(
        [*system_turns(record), *turns],
        tools=tools_text(record),
        created_at=created(record),
        outcome=outcome(record.get("reward"), record.get("feedback"), record.get("verdict")),
        provenance=sampled(record),
    )


def created(*records: object) -> Any:
    """Return the first time written in some records, None where there is none."""
    times = (time(r.get(key)) for r in records if isinstance(r, dict) for key in CALL_CREATED_KEYS)
    return next((t for t in times if t is not None), None)


def sampled(*records: object) -> dict[str, Any] | None:
    """Return the model and the sampling parameters that the first of some records names."""
    texts = [r for r in records if isinstance(r, dict)]
    model = next((r["model"] for r in texts if isinstance(r.get("model"), str)), None)
    sampling = {k: next((r[k] for r in texts if r.get(k) is not None), None) for k in ("temperature", "top_p", "seed")}
    return provenance(generator_model=model, **sampling)
