"""The kernel `chat` as a whole: never raises, does not see order or batches, loses no record."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import InternalError
from lake.sources.registry import FORMATS as LANDED
from tests.effort import examples
from transforms.chat.chats import CHAT, FORMATS, units_of
from transforms.chat.units import UNREADABLE

KEYS = [
    *("messages", "conversations", "traj", "turns", "choices", "message", "role", "from", "value", "content", "parts"),
    *("type", "text", "tool_calls", "function", "name", "arguments", "id", "tool_use", "input", "output", "thinking"),
    *("request", "response", "body", "observations", "trace", "attributes", "events", "sessionId", "uuid", "traceId"),
    *("spanId", "openinference.span.kind", "llm.input_messages.0.message.role", "gen_ai.prompt", "weight", "reward"),
    *("gen_ai.input.messages", "gen_ai.operation.name", "ai.operationId", "ai.prompt", "timestamp", "model", "seed"),
    *(
        "chosen",
        "rejected",
        "prompt",
        "completion",
        "label",
        "instruction",
        "system",
        "tools",
        "delta",
        "data",
        "ticks",
    ),
]
WORDS = [
    *(
        "user",
        "assistant",
        "system",
        "tool",
        "human",
        "gpt",
        "function_call",
        "text",
        "tool_use",
        "tool_result",
        "chat",
    ),
    *("LLM", "GENERATION", "message", "reasoning", "ai.generateText", "None", "[]", "{}", '{"role": "user"}', "NaN"),
    *("data: {}", 'data: {"choices": [{"delta": {"content": "a"}}]}', "user: hi\nassistant: ho", "\ud800", "\u0000"),
]
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=5)
records: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)


def payload_of(record: object) -> str:
    """Return a record as it would land: ASCII JSON, half surrogates escaped."""
    return json.dumps(record, allow_nan=True)


def batch_of(rows: list[tuple[str, str]]) -> pa.RecordBatch:
    """Return payloads and formats as the kernel's input."""
    return pa.record_batch([[p for p, _ in rows], [f for _, f in rows]], schema=CHAT.inputs)


@settings(max_examples=examples(400))
@given(record=records, name=st.sampled_from(sorted(FORMATS)))
def test_no_json_makes_the_kernel_raise_and_every_record_gives_a_unit(record: Any, name: str) -> None:
    (units,) = CHAT.compute(batch_of([(payload_of(record), name)])).column("units").to_pylist()
    assert units
    for unit in units:
        assert unit["problem"] is not None or unit["messages"]
        for turn in [*(unit["messages"] or []), *(unit["chosen"] or []), *(unit["rejected"] or [])]:
            assert turn["role"] in ("system", "user", "assistant", "tool")
            assert turn["tool_calls"] != []
            for call in turn["tool_calls"] or []:
                assert call["arguments"] is None or json.loads(call["arguments"]) is not ...


@settings(max_examples=examples(50))
@given(
    rows=st.lists(st.tuples(records.map(payload_of), st.sampled_from(sorted(FORMATS))), min_size=1, max_size=8),
    size=st.integers(1, 8),
    order=st.randoms(use_true_random=False),
)
def test_results_do_not_depend_on_row_order_or_batch_size(rows: list[tuple[str, str]], size: int, order: Any) -> None:
    whole = CHAT.compute(batch_of(rows)).column("units").to_pylist()
    places = list(range(len(rows)))
    order.shuffle(places)
    found: dict[int, Any] = {}
    for start in range(0, len(rows), size):
        part = places[start : start + size]
        units = CHAT.compute(batch_of([rows[i] for i in part])).column("units").to_pylist()
        found |= dict(zip(part, units, strict=True))
    assert [found[i] for i in range(len(rows))] == whole


def test_every_json_format_of_traces_and_synthetic_has_a_reader() -> None:
    named = {name for name, form in LANDED.items() if {"traces", "synthetic"} & {*form.KINDS}}
    assert named == set(FORMATS)


def test_a_format_without_a_reader_is_an_error_that_says_where_to_add_it() -> None:
    with pytest.raises(InternalError, match=r"no reader for format 'sheet'.*FORMATS"):
        units_of("{}", "sheet")


def test_deep_nesting_numbers_beyond_double_and_broken_text_are_unreadable_or_kept_valid() -> None:
    deep = '{"messages": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert [u["problem"] for u in units_of(deep, "openai_chat")] == [UNREADABLE]
    assert [u["problem"] for u in units_of('{"messages": NaN}', "openai_chat")] == [UNREADABLE]
    call = '{"name": "f", "arguments": {"x": 1e999, "y": [1]}}'
    (unit,) = units_of('{"messages": [{"role": "assistant", "tool_calls": [' + call + "]}]}", "openai_chat")
    assert unit["messages"][0]["tool_calls"] == [{"id": None, "name": "f", "arguments": '{"x":null,"y":[1]}'}]


def test_half_a_surrogate_pair_becomes_the_replacement_character_and_whole_pairs_stay() -> None:
    payload = '{"messages": [{"role": "user", "content": "a \\ud83d b \\ud83d\\ude00 \\u00e9"}]}'
    (units,) = CHAT.compute(batch_of([(payload, "openai_chat")])).column("units").to_pylist()
    assert units[0]["messages"][0]["content"] == "a \ufffd b \U0001f600 é"
