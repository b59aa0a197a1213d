"""Rows of published tables as other tools want them: HF and TRL messages, JSONL that trains, provider JSONL.

Tables keep every field of a turn, null where absent, and the arguments of a call as JSON text, because Arrow structs
invent null keys. At this edge the nulls go. HF templates take `arguments` as an object; provider files want it as a
JSON string (Azure's fine-tuning-functions page); both directions are written out here and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lake.json_values import json_value, usual_number

Row = Mapping[str, Any]

__all__ = ["hf_messages", "hf_tools", "provider_row", "shape_of", "split_completion", "trl_row"]


def hf_messages(messages: Sequence[Row], *, weights: bool = False) -> list[dict[str, Any]]:
    """Turn a row's turns into HF messages: no null key, arguments as objects.

    `content` is always there, empty where a turn has none: most templates concatenate it without asking. Arguments
    that are no JSON object (models write such calls) stay the text that they are.

    Args:
        messages: turns, as in the tables.
        weights: write `weight` on every assistant turn, 1 where the row does not say. So the turns of a row always
            differ in their keys, and `datasets` keeps them as JSON in place of a struct that invents null keys.

    Returns:
        One dict per turn.

    >>> hf_messages([{"role": "user", "content": "hi", "name": None}])
    [{'role': 'user', 'content': 'hi'}]
    """
    return [_message(turn, _call_with_object, weights) | {"content": _content(turn)} for turn in messages]


def hf_tools(tools: str | None) -> list[dict[str, Any]] | None:
    """Return the tool schemas of a row, None where it has none."""
    if not tools:
        return None
    parsed = json.loads(tools)
    return parsed if isinstance(parsed, list) else [parsed]


def shape_of(columns: Iterable[str]) -> str:
    """Say what a table trains by its columns: pair, unpaired, sft, text, or rows (anything else)."""
    has = set(columns)
    if "kind" in has and "shape" in has and "text_hash" in has:
        return "rows"  # `examples` itself: every shape in one table
    if {"messages", "chosen", "rejected"} <= has:
        return "pair"
    if {"messages", "label"} <= has:
        return "unpaired"
    if "messages" in has:
        return "sft"
    return "text" if "text" in has and "question" not in has else "rows"


def split_completion(messages: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Split an unpaired row into what stood before and what is judged: all after the last user turn."""
    last = max((i for i, turn in enumerate(messages) if turn["role"] == "user"), default=-1)
    return list(messages[: last + 1]), list(messages[last + 1 :])


def trl_row(row: Row, key: str, shape: str, *, tools: bool) -> dict[str, Any]:
    """Return a row as the TRL trainer of its shape takes it from `datasets.load_dataset("json")`.

    Only the id and what trains are written: a column named `prompt` would turn a chat into prompt and completion.

    Args:
        row: a row of the table.
        key: its id column.
        shape: of `shape_of`.
        tools: whether any row of the table has tools. TRL reads a string column as JSON, so rows without any hold the
            text `null`: a column that is missing or all null at the start of a file gets the wrong type.

    Returns:
        A JSON object; its keys are the same for every row of the table.
    """
    if shape == "rows":
        return {name: json_value(value, usual_number) for name, value in row.items()}
    if shape == "text":
        return {key: row[key], "text": row["text"]}
    out: dict[str, Any] = {key: row[key]}
    if shape == "sft":
        out["messages"] = hf_messages(row["messages"], weights=True)
    elif shape == "pair":
        out["prompt"] = hf_messages(row["messages"] or [], weights=True)
        out["chosen"] = hf_messages(row["chosen"], weights=True)
        out["rejected"] = hf_messages(row["rejected"], weights=True)
    else:
        prompt, completion = split_completion(row["messages"])
        out["prompt"] = hf_messages(prompt, weights=True)
        out["completion"] = hf_messages(completion, weights=True)
        out["label"] = row["label"]
    if tools:
        out["tools"] = row.get("tools") or "null"
    return out


def provider_row(row: Row, shape: str) -> dict[str, Any]:
    """Return a row as one line of OpenAI chat JSONL, which Azure, Together, Fireworks and NeMo mirror.

    Chats give `messages` (and `tools`), pairs give `input`, `preferred_output`, `non_preferred_output`. No id, no
    reasoning and no other key: the format has no place for them, and Together refuses extra columns.

    Args:
        row: a row of the table.
        shape: of `shape_of`.

    Raises:
        ValueError: rows of this shape have no provider format.
    """
    if shape not in ("sft", "pair"):
        raise ValueError(f"rows of shape {shape!r} have no chat format of providers; expected sft or pair")
    tools = hf_tools(row.get("tools"))
    chat: dict[str, Any] = {"messages": _provider_turns(row["messages"])}
    if tools:
        chat["tools"] = tools
    if shape == "sft":
        return chat
    return {
        "input": chat,
        "preferred_output": _provider_turns(row["chosen"]),
        "non_preferred_output": _provider_turns(row["rejected"]),
    }


def _provider_turns(turns: Sequence[Row]) -> list[dict[str, Any]]:
    return [_message({**turn, "reasoning": None}, _call_with_text, False) for turn in turns]


def _message(turn: Row, render: Callable[[Row], dict[str, Any]], weights: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"role": turn["role"]}
    if turn.get("content") is not None or turn.get("content_parts"):
        out["content"] = _content(turn)
    if turn.get("reasoning") is not None:
        out["reasoning_content"] = turn["reasoning"]
    if turn.get("tool_calls"):
        out["tool_calls"] = [render(call) for call in turn["tool_calls"]]
    for name in ("tool_call_id", "name"):
        if turn.get(name) is not None:
            out[name] = turn[name]
    if turn["role"] == "assistant" and (weights or turn.get("weight") is not None):
        out["weight"] = 1 if turn.get("weight") is None else turn["weight"]
    return out


def _content(turn: Row) -> str | list[Any]:
    text = turn.get("content") or ""
    if not turn.get("content_parts"):
        return text
    parts = json.loads(turn["content_parts"])
    before = [{"type": "text", "text": text}] if text else []
    return [*before, *(parts if isinstance(parts, list) else [parts])]


def _call_with_object(call: Row) -> dict[str, Any]:
    arguments: Any = call.get("arguments") or "{}"
    try:
        parsed = json.loads(arguments)
    except ValueError:
        parsed = arguments
    return _call(call, parsed if isinstance(parsed, dict) else arguments)


def _call_with_text(call: Row) -> dict[str, Any]:
    return _call(call, call.get("arguments") or "{}")


def _call(call: Row, arguments: Any) -> dict[str, Any]:
    out: dict[str, Any] = {} if call.get("id") is None else {"id": call["id"]}
    return out | {"type": "function", "function": {"name": call.get("name") or "", "arguments": arguments}}
