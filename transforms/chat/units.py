"""What a chat format gives: units, in the types of `curated/examples`.

A unit is one trainable thing of a record (a chat, a pair, a labelled chat), or one span's share of a conversation.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import pyarrow as pa

from lake.identity import H
from lake.schema import PACKAGE, arrow
from lake.times import LONGEST, epoch_number, epoch_time, utc_time
from transforms.chat.blocks import Message, loaded, scalar_text

Unit = dict[str, Any]

# The package's own contract, not a project's: a kernel is pure and its code decides its results. A project whose
# contract has other types in these columns is refused by `lake.kernels.project.kernels`, see `Kernel.contract_columns`.
EXAMPLE = arrow(PACKAGE, "curated/examples")
EXAMPLE_COLUMNS = ("messages", "chosen", "rejected", "tools", "label", "created_at", "outcome", "provenance")
TIME = pa.timestamp("us", tz="UTC")

SPAN = pa.struct(
    [
        ("trace_id", pa.string()),  # what groups: a trace, a session; null where the record names none
        ("span_id", pa.string()),
        ("parent_id", pa.string()),
        ("operation", pa.string()),  # llm: a model call; agent; turn: one line of a session; other
        ("turn_id", pa.string()),  # what the lines of one turn share (a message written one block a line)
        ("started_at", TIME),
        ("ended_at", TIME),
        ("updated_at", TIME),
        ("keys", pa.list_(pa.string())),  # one per message: what makes it the same message in another span
    ]
)
UNIT = pa.struct(
    [
        *(EXAMPLE.field(name).with_nullable(True) for name in EXAMPLE_COLUMNS),
        ("span", SPAN),
        ("problem", pa.string()),
    ]
)

UNREADABLE = "unreadable_shape"  # the record is none that its format's reader knows
NO_CHAT = "no_chat"  # it is read, and holds no conversation: a tool span, a summary line
ISO = re.compile(r"\d{4}-\d\d-\d\d")
PROVENANCE_TEXT = ("generator_model", "generator_version", "prompt_id", "prompt_hash", "verifier", "verifier_verdict")


def unit(messages: list[Message] | None = None, **fields: Any) -> Unit:
    """Build a unit; fields that are None stay null.

    Args:
        messages: the chat, or the shared prompt of a pair.
        fields: `chosen`, `rejected`, `tools`, `label`, `created_at`, `outcome`, `provenance`, `span`, `problem`.
    """
    return {"messages": messages, **{k: v for k, v in fields.items() if v is not None}}


def unreadable() -> list[Unit]:
    """Return the one unit of a record that is no chat."""
    return [unit(None, problem=UNREADABLE)]


def in_trace(unit_: Unit, span: dict[str, Any]) -> Unit:
    """Return a unit with its place in a trace; one that names no trace, or cannot be read, stands for itself.

    Args:
        unit_: the unit.
        span: fields of `SPAN` but `keys`, which follow from the messages.
    """
    if span.get("trace_id") is None or unit_.get("problem") == UNREADABLE:
        return unit_
    keys = message_keys(unit_["messages"]) if unit_["messages"] else None
    return {**unit_, "span": {**span, "keys": keys}}


def outcome(reward: object = None, feedback: object = None, verdict: object = None) -> dict[str, Any] | None:
    """Build an outcome, or None where a record tells none.

    Args:
        reward: a number; anything else counts as absent.
        feedback: what a user or a judge wrote.
        verdict: the word of a check, such as `error`.
    """
    fields = {"reward": _number(reward), "feedback": scalar_text(feedback), "verdict": scalar_text(verdict)}
    return fields if any(v is not None for v in fields.values()) else None


def provenance(**fields: object) -> dict[str, Any] | None:
    """Build a provenance from the struct's fields, or None where all are absent or of no use."""
    made: dict[str, Any] = {k: scalar_text(fields[k]) for k in PROVENANCE_TEXT if fields.get(k) not in (None, "")}
    made |= {k: n for k in ("temperature", "top_p") if (n := _number(fields.get(k))) is not None}
    seed, parents = fields.get("seed"), fields.get("parent_ids")
    if isinstance(seed, int) and not isinstance(seed, bool) and abs(seed) < 2**63:
        made["seed"] = seed
    if isinstance(parents, list) and parents and all(isinstance(p, str) for p in parents):
        made["parent_ids"] = parents
    return made or None


def _number(value: object) -> float | None:
    """Return a JSON number as a double; anything else, and what no double holds, is None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def message_keys(messages: list[Message]) -> list[str]:
    """Return a key per message, equal where two spans hold the same message.

    A later span repeats what an earlier one said, often without its reasoning and ids, with `""` for no content, or
    with the arguments written otherwise; the key sees none of these.
    """
    return [H(m["role"], m["content"] or "", m.get("content_parts") or "", *_call_keys(m)) for m in messages]


def _call_keys(turn: Message) -> list[str]:
    """Return name and arguments of a turn's calls, the arguments' keys sorted."""
    calls = turn.get("tool_calls") or []
    return [str(text) for c in calls for text in (c["name"], json.dumps(loaded(c["arguments"]), sort_keys=True))]


def time(value: object) -> datetime | None:
    """Read a point in time as traces write it.

    Args:
        value: ISO 8601 text (UTC where it names no zone); seconds, milli-, micro- or nanoseconds since 1970, told apart
            by size, as a number or text of digits; OpenTelemetry's pair [seconds, nanoseconds].

    Returns:
        UTC time to the microsecond, rounded down; None for anything else.

    >>> time("2025-06-14T10:00:00Z") == time(1749895200) == time("1749895200000000000") == time([1749895200, 0])
    True
    """
    value = epoch_number(value)
    if isinstance(value, str):
        return utc_time(value.removesuffix(" UTC")) if len(value) <= LONGEST and ISO.match(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e19:
        return None
    per_second = next(
        scale for limit, scale in ((1e11, 1), (1e14, 10**3), (1e17, 10**6), (1e19, 10**9)) if value < limit
    )
    return epoch_time(value * 10**6 // per_second if isinstance(value, int) else int(value * (10**6 / per_second)))
