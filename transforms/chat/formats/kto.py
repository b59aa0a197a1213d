"""Unpaired labels for KTO: a chat, and whether it is wanted. One record is one labelled chat.

Ethayarajh et al., "KTO: Model Alignment as Prospect Theoretic Optimization", 2024. The label is `label` (TRL) or
`kto_tag` (LLaMA-Factory); the chat is messages, a ShareGPT conversation, or prompt and completion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lake.record_keys.chats import CONVERSATION_KEYS, LABEL_KEYS, LABELS
from transforms.chat.blocks import UnreadableShape
from transforms.chat.formats import openai_chat, prompt_completion, sharegpt
from transforms.chat.row_facts import row_facts
from transforms.chat.units import Unit


def units(record: object) -> list[Unit]:
    """Read one labelled chat.

    Raises:
        UnreadableShape: it is no such chat.
    """
    if not isinstance(record, dict):
        raise UnreadableShape("no object")
    verdict = _label(record)
    if verdict is None:
        raise UnreadableShape("no label that says true or false")
    if isinstance(record.get("messages"), list):
        read = openai_chat.units(record)
    elif any(isinstance(record.get(key), list) for key in CONVERSATION_KEYS):
        read = sharegpt.units(record)
    else:
        read = prompt_completion.units(record)
    facts: dict[str, Any] = row_facts(record)
    return [{**facts, **{k: v for k, v in unit.items() if v is not None}, "label": verdict} for unit in read]


def _label(record: Mapping[str, Any]) -> bool | None:
    """Return the verdict, or None where there is none; 1 and 0 are verdicts too."""
    value = next((record[key] for key in LABEL_KEYS if key in record), None)
    return LABELS.get(value) if isinstance(value, bool | int | str) else None
