"""Landing and reading know the same keys: what a format accepts its reader reads, and what it reads is accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lake.record_keys import chats
from lake.sources import formats, formats_of, recognise
from transforms.chat.chats import units_of
from transforms.chat.units import UNREADABLE

Case = tuple[str, str, dict[str, Any]]  # format, spelling, record


def kto() -> Iterator[Case]:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    for key in chats.LABEL_KEYS:
        yield "kto", key, {"messages": messages, key: False}
    for label in [*chats.LABELS, 1, 0]:
        yield "kto", f"label {label!r}", {"messages": messages, "label": label}
    for key in chats.CONVERSATION_KEYS:
        yield "kto", key, {key: [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}], "label": True}
    for prompt in chats.PROMPT_KEYS:
        for completion in chats.COMPLETION_KEYS:
            yield "kto", f"{prompt}, {completion}", {prompt: "q", completion: "a", "label": False}


CASES = [*kto()]


@pytest.mark.parametrize(("form", "record"), [pytest.param(f, r, id=f"{f}: {k}") for f, k, r in CASES])
def test_each_spelling_is_recognised_as_its_format_and_read(form: str, record: dict[str, Any]) -> None:
    kind = formats()[form].kinds[0]
    verdict = recognise([(f, None, [record]) for f in formats_of(kind) if f.is_json])
    assert verdict.format is not None and verdict.format.name == form, verdict.detail
    units = units_of(json.dumps(record), form)
    assert units and all(u.get("problem") != UNREADABLE for u in units)


@pytest.mark.parametrize("label", [None, "yes", "TRUE", 2, 1.0, [True]])
def test_what_is_no_label_is_none_for_both_halves(label: object) -> None:
    record = {"prompt": "q", "completion": "a", "label": label}
    assert formats()["kto"].lacks(record) is not None
    assert [u["problem"] for u in units_of(json.dumps(record), "kto")] == [UNREADABLE]
