"""What a row says of itself beside its texts: which model, prompt and seed made it, and what a check found.

Generators write this under many names, flat or below `metadata`; this is the table of the names that occur. A value of
the wrong type counts as absent. Cost: a few dictionary look-ups a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lake.record_keys.chats import CREATED_KEYS, SYSTEM_KEYS
from transforms.chat.blocks import Message, message
from transforms.chat.units import outcome, provenance, time

NESTED = ("metadata", "meta", "provenance", "generation", "generation_config", "sampling_params", "params", "info")

NAMES: Mapping[str, tuple[str, ...]] = {
    "generator_model": ("generator_model", "generator", "model", "model_name", "model_id", "generated_by", "llm"),
    "generator_version": ("generator_version", "model_version", "model_revision", "version"),
    "prompt_id": ("prompt_id", "template_id", "prompt_template", "template"),
    "prompt_hash": ("prompt_hash", "prompt_sha256", "template_hash"),
    "seed": ("seed", "random_seed", "sampling_seed"),
    "temperature": ("temperature",),
    "top_p": ("top_p", "topp"),
    "parent_ids": ("parent_ids", "parents", "seed_ids", "source_ids", "parent_id", "seed_task_id"),
    "verifier": ("verifier", "judge", "judge_model", "verified_by", "filter"),
    "verifier_verdict": ("verifier_verdict", "verdict", "judgement", "judgment", "verification"),
}

NUMBERED = ("prompt_id", "generator_version")  # a number says which one, too


def row_facts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a unit that a row carries beside its texts.

    Args:
        record: the row.

    Returns:
        `created_at`, `outcome` and `provenance`, those that it has.

    >>> row_facts({"meta": {"model": "gpt-4", "seed": 7}})
    {'provenance': {'generator_model': 'gpt-4', 'seed': 7}}
    """
    sides = [record, *(record[key] for key in NESTED if isinstance(record.get(key), dict))]
    given = {field: _first(sides, names, field) for field, names in NAMES.items()}
    created = next((t for s in sides for k in CREATED_KEYS if (t := time(s.get(k)))), None)
    facts = {
        "created_at": created,
        "outcome": outcome(record.get("reward"), record.get("feedback"), record.get("verdict")),
        "provenance": provenance(**given),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _first(sides: list[Mapping[str, Any]], names: tuple[str, ...], field: str) -> object:
    """Return the first value of the right type under any of the names."""
    for side in sides:
        for name in names:
            value = side.get(name)
            if field in NUMBERED and isinstance(value, int) and not isinstance(value, bool):
                return value
            if field == "parent_ids":
                if isinstance(value, str) and value:
                    return [value]
                if isinstance(value, list) and value and all(isinstance(v, str | int) for v in value):
                    return [str(v) for v in value]
            elif field in ("seed", "temperature", "top_p"):
                if isinstance(value, int | float) and not isinstance(value, bool):
                    return value
            elif isinstance(value, str) and value and len(value) <= 500:
                return value
    return None


def system_message(record: Mapping[str, Any]) -> list[Message]:
    """Return the system prompt that stands beside the texts."""
    for key in SYSTEM_KEYS:
        value = record.get(key)
        if isinstance(value, str) and value:
            return [message("system", value)]
    return []


def history_messages(record: Mapping[str, Any]) -> list[Message]:
    """Return the earlier rounds of LLaMA-Factory's Alpaca rows: pairs of what the user and the assistant said."""
    history = record.get("history")
    pairs = history if isinstance(history, list) else []
    return [
        message(role, text)
        for pair in pairs
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(t, str) for t in pair)
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]
