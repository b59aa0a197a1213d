"""Every file of the trace sources: which format it is, how its spans are cut and named."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lake.landing.recognition import recognise_file
from lake.landing.streams import Stream
from lake.sources import claude_code, openinference, otel_genai

OTEL = "openinference/js/packages"
EXPECTED: dict[str, tuple[str | None, int]] = {
    "claude_code_log/test/test_data/edge_cases.jsonl": ("claude_code", 19),
    "claude_code_log/test/test_data/representative_messages.jsonl": ("claude_code", 12),
    "claude_code_log/test/test_data/session_b.jsonl": ("claude_code", 3),
    "claude_code_log/test/test_data/todowrite_examples.jsonl": ("claude_code", 12),
    "fastchat/data/dummy_conversation.json": ("sharegpt", 500),
    "fastchat/fastchat/llm_judge/data/judge_prompts.jsonl": ("fastchat", 8),
    "fastchat/fastchat/llm_judge/data/mt_bench/question.jsonl": ("fastchat", 80),
    "fastchat/fastchat/llm_judge/data/mt_bench/reference_answer/gpt-4.jsonl": ("fastchat", 30),
    "fastchat/fastchat/llm_judge/data/vicuna_bench/question.jsonl": ("fastchat", 80),
    "fastchat/fastchat/llm_judge/data/vicuna_bench/reference_answer/gpt-4.jsonl": ("fastchat", 10),
    f"{OTEL}/openinference-genai/test/__fixtures__/openinference_client_span_tool_calls.json": ("openinference", 1),
    f"{OTEL}/openinference-genai/test/__fixtures__/openinference_client_span_input_output_only.json": (
        "openinference",
        1,
    ),
    f"{OTEL}/openinference-genai/test/__fixtures__/otel_genai_client_span_tool_calls.json": ("otel_genai", 1),
    f"{OTEL}/openinference-genai/test/__fixtures__/otel_genai_tool_execution_span.json": ("otel_genai", 1),
    f"{OTEL}/openinference-vercel/test/__fixtures__/v6-spans/all-spans.json": ("otel_genai", 10),
    f"{OTEL}/openinference-vercel/test/__fixtures__/v6-spans/capture-results.json": (None, 0),
    "tau2_bench/airline/tasks.json": (None, 0),
    "tau2_bench/retail/db.json": (None, 0),
    "tau_bench/few_shot_data/MockRetailDomainEnv-few_shot.jsonl": ("tau_bench", 69),
    "tau_bench/historical_trajectories/gpt-4o-airline.json": ("tau_bench", 200),
}
GROUPS = {
    "langfuse/**/seeder/**/*.json": ("langfuse", 13),
    "langfuse/**/*.trace.json": ("langfuse", 20),
    "langfuse/**/*.chatml.json": (None, 20),
    "openinference/js/packages/openinference-instrumentation-anthropic/**/*.json": ("anthropic", 8),
    "openinference/java/**/*.json": ("openai_completion", 2),
    "openinference/python/**/*.json": (None, 2),
    "tau2_bench/tests/**/simulations/*.json": ("tau2_bench", 2),
}


def read(path: Path) -> tuple[str | None, int]:
    """The format of a file and the number of its records."""
    stream = Stream(path.open("rb"))
    reading = recognise_file(stream, path.name, "traces")
    if reading.format is None or reading.cut is None:
        return None, 0
    return reading.format.NAME, sum(len(block.payloads) for block in reading.cut(stream))


@pytest.mark.parametrize("name", EXPECTED)
def test_each_file_is_of_its_format_and_holds_its_records(data: Path, name: str) -> None:
    assert read(data / "traces" / name) == EXPECTED[name]


@pytest.mark.parametrize("pattern", GROUPS)
def test_each_file_of_a_group_is_of_one_format(data: Path, pattern: str) -> None:
    form, files = GROUPS[pattern]
    assert Counter(read(p)[0] for p in (data / "traces").glob(pattern)) == {form: files}


SPANS = [
    {"traceId": "a1", "spanId": f"b{i}", "attributes": [{"key": "gen_ai.prompt", "value": {"stringValue": "hi"}}]}
    for i in range(3)
]
EXPORT = {"resourceSpans": [{"scopeSpans": [{"spans": SPANS[:2]}]}, {"scopeSpans": [{"spans": SPANS[2:]}]}]}


def test_an_otlp_export_is_cut_into_its_spans() -> None:
    module = otel_genai
    assert module.lacks(EXPORT) is None
    cut = [json.loads(p) for p in module.split(json.dumps(EXPORT).encode())]
    assert cut == SPANS
    assert [module.natural_key(s) for s in cut] == ["a1/b0", "a1/b1", "a1/b2"]
    assert openinference.lacks(EXPORT) is not None


def test_a_span_that_stands_alone_keeps_its_bytes() -> None:
    payload = b'{ "spanId":"b",  "traceId": "a", "attributes": {"gen_ai.system": 1.0} }'
    assert list(otel_genai.split(payload)) == [payload]


def test_spans_of_a_mapping_by_operation_are_cut(data: Path) -> None:
    folder = data / "traces" / OTEL / "openinference-vercel/test/__fixtures__/v6-spans"
    split = otel_genai.split
    cut = [json.loads(p) for p in split((folder / "spans-by-operation.json").read_bytes())]
    whole = json.loads((folder / "all-spans.json").read_bytes())
    assert sorted(cut, key=json.dumps) == sorted(whole, key=json.dumps)


KEYLESS: list[Any] = [42, [1], "massive error", {"silly": "this"}, {"type": "summary", "leafUuid": "x"}]


def test_lines_without_ids_have_keys_of_their_own_content() -> None:
    key = claude_code.natural_key
    assert len({key(r) for r in KEYLESS}) == len(KEYLESS)
    assert all(key(r) == key(json.loads(json.dumps(r))) for r in KEYLESS)
    assert key({"sessionId": "s", "uuid": "u"}) == "s/u"


def test_the_end_of_a_span_is_its_time() -> None:
    observed = otel_genai.observed_at
    assert observed({"endTimeUnixNano": "1749895200000000000"}) == "2025-06-14T10:00:00+00:00"
    assert observed({"endTime": [1749895200, 5000]}) == "2025-06-14T10:00:00.000005+00:00"
    assert observed({"end_time": "2025-06-14T10:00:00Z"}) == "2025-06-14T10:00:00Z"
    assert observed(3) is None
