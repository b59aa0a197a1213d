"""Landing and reading know the same keys: what a format accepts its reader reads, and what it reads is accepted."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import duckdb
import jinja2
import pytest

from lake.landing.recognition import recognise
from lake.record_keys import chats, documents, items
from lake.sources import kto, openinference, otel_genai
from lake.sources.registry import FORMATS as LANDED
from lake.sources.registry import identity_of, json_formats_of
from tests.conftest import ROOT
from tests.transforms.chat.formats.test_spans import CONVENTIONS, unflat
from transforms.chat.chats import FORMATS, units_of
from transforms.chat.units import UNREADABLE, time
from transforms.text.document_text import extract

Case = tuple[str, str, dict[str, Any]]  # format, spelling, record
MESSAGES = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
TURNS = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]
REQUEST, RESPONSE = {"messages": MESSAGES[:1]}, {"choices": [{"message": MESSAGES[1]}]}
IDS = {"traceId": "t", "spanId": "s"}


def rows() -> Iterator[Case]:
    for key in chats.ANSWER_KEYS:
        yield "alpaca", key, {"instruction": "q", key: "a"}
    yield "self_instruct", "instances", {"instruction": "q", "instances": [{"input": "", "output": "a"}]}
    for prompt, completion in product(chats.PROMPT_KEYS, chats.COMPLETION_KEYS):
        yield "prompt_completion", f"{prompt}, {completion}", {prompt: "q", completion: "a"}
        yield "prompt_completion", f"turns {prompt}, {completion}", {prompt: MESSAGES[:1], completion: MESSAGES[1:]}


def pairs() -> Iterator[Case]:
    for chosen, rejected in chats.SIDE_KEYS:
        yield "preference", f"{chosen}, {rejected}", {"prompt": "q", chosen: "a", rejected: "b"}
        yield "preference", f"turns {chosen}, {rejected}", {chosen: MESSAGES, rejected: MESSAGES}
    for speaker, space in product(chats.SPEAKERS, ("", " ", "\n", "\n\n")):
        text = f"{space}{speaker}: q\n\nAssistant: a"
        yield "hh", f"{space!r} {speaker}", {"chosen": text, "rejected": text}


def labelled() -> Iterator[Case]:
    for key in chats.LABEL_KEYS:
        yield "kto", key, {"messages": MESSAGES, key: False}
    for label in [*chats.LABELS, 1, 0]:
        yield "kto", f"label {label!r}", {"messages": MESSAGES, "label": label}
    for key in chats.CONVERSATION_KEYS:
        yield "kto", key, {key: TURNS, "label": True}
    for prompt, completion in product(chats.PROMPT_KEYS, chats.COMPLETION_KEYS):
        yield "kto", f"{prompt}, {completion}", {prompt: "q", completion: "a", "label": False}


def conversations() -> Iterator[Case]:
    for key in chats.CONVERSATION_KEYS:
        yield "sharegpt", key, {key: TURNS}
    for key, role in product(chats.ROLE_KEYS, chats.ROLES):
        turn = {key: role, "content": "q"}
        yield "openai_chat", f"{key} {role}", {"messages": [turn]}
        yield "sharegpt", f"{key} {role}", {"conversations": [turn]}
    for envelope in chats.ENVELOPE_KEYS:
        yield "openai_chat", envelope, {"messages": [{envelope: MESSAGES[0]}]}
    yield "openai_chat", "author.role", {"messages": [{"author": {"role": "user"}, "content": "q"}]}
    yield "fastchat", "turns", {"question_id": 1, "turns": ["q"]}
    yield "fastchat", "choices", {"question_id": 1, "choices": [{"turns": ["a"]}]}
    yield "fastchat", "prompt_template", {"prompt_template": "q", "system_prompt": "s"}
    yield "tau_bench", "traj", {"traj": MESSAGES, "reward": 1.0}
    yield "tau_bench", "messages_display", {"messages_display": "user: q\nassistant: a"}
    run = {"task_id": "1", "termination_reason": "user_stop"}
    yield "tau2_bench", "messages", {**run, "messages": MESSAGES}
    yield "tau2_bench", "ticks", {**run, "ticks": [{"user_chunk": MESSAGES[0]}]}
    line = {"sessionId": "s", "uuid": "u", "message": MESSAGES[0]}
    for kind in ("user", "assistant", "system", "progress"):
        yield "claude_code", kind, {**line, "type": kind}
    yield "claude_code", "summary", {"type": "summary", "leafUuid": "u"}


def calls() -> Iterator[Case]:
    for request, response in product(chats.REQUEST_KEYS, chats.RESPONSE_KEYS):
        yield "openai_completion", f"{request}, {response}", {request: REQUEST, response: RESPONSE}
    for key in chats.HTTP_KEYS:
        body = REQUEST if key in chats.HTTP_REQUEST_KEYS else RESPONSE
        yield "openai_completion", key, {key: "x", "body": body}
    for word in chats.RESPONSE_OBJECTS:
        output = {"output": [MESSAGES[1]]} if word == "response" else RESPONSE
        yield "openai_completion", word, {"object": word, **output}
    yield "openai_completion", "choices", RESPONSE
    yield "openai_completion", "candidates", {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}
    yield "openai_completion", "params", {"custom_id": "1", "params": REQUEST}
    yield "openai_completion", "result", {"custom_id": "1", "result": {"message": MESSAGES[1]}}
    for block in (*chats.ANTHROPIC_CALLS, *chats.ANTHROPIC_RESULTS, *chats.ANTHROPIC_THOUGHTS):
        turn = {"role": "assistant", "content": [{"type": block, "id": "c", "name": "f", "thinking": "hm"}]}
        yield "anthropic", block, {"messages": [turn]}
        yield "anthropic", f"request {block}", {"request": {"messages": [turn]}, "response": {"content": "a"}}
    answer = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "a"}]}
    yield "anthropic", "message", answer
    yield "anthropic", "response", {"request": REQUEST, "response": answer}


def traces() -> Iterator[Case]:
    generation = {"id": "o", "type": "GENERATION", "input": MESSAGES[:1], "output": MESSAGES[1]}
    yield "langfuse", "beside", {"trace": {"id": "t"}, "observations": [generation]}
    yield "langfuse", "inside", {"id": "t", "observations": [generation]}
    yield "langfuse", "inside the trace", {"trace": {"id": "t", "observations": [generation]}}
    for form, module in (("openinference", openinference), ("otel_genai", otel_genai)):
        for prefix in module.PREFIXES:
            name = f"{prefix}operation.name" if prefix.endswith(".") else prefix
            yield form, f"flat {name}", {**IDS, "attributes": {name: "chat"}}
            yield form, f"nested {name}", {**IDS, "attributes": unflat({name: "chat"})}
    for convention, attributes in CONVENTIONS.items():
        form = "openinference" if any(name.startswith(openinference.PREFIXES) for name in attributes) else "otel_genai"
        yield form, f"flat {convention}", {**IDS, "attributes": attributes}
        yield form, f"nested {convention}", {**IDS, "attributes": unflat(attributes)}


CASES = [*rows(), *pairs(), *labelled(), *conversations(), *calls(), *traces()]


def recognised(record: object, kind: str) -> str | None:
    verdict = recognise([(form, None, [record]) for form in json_formats_of(kind)])
    return verdict.format.NAME if verdict.format else None


@pytest.mark.parametrize(("form", "record"), [pytest.param(f, r, id=f"{f}: {k}") for f, k, r in CASES])
def test_each_spelling_is_recognised_as_its_format_and_read(form: str, record: dict[str, Any]) -> None:
    for kind in LANDED[form].KINDS:
        assert recognised(record, kind) == form
    units = units_of(json.dumps(record), form)
    assert units and all(u.get("problem") != UNREADABLE for u in units)


def test_every_format_with_a_reader_has_its_spellings_tested() -> None:
    assert {form for form, _, _ in CASES} == set(FORMATS)


def test_ids_are_chained_but_for_spans_and_documents() -> None:
    others = {name: identity_of(form) for name, form in LANDED.items() if identity_of(form) != "record"}
    assert others == {
        "claude_code": "span", "openinference": "span", "otel_genai": "span", "html": "document", "text": "document"
    }  # fmt: skip


def test_every_module_of_both_halves_is_in_its_registry() -> None:
    modules = {path.stem for path in (ROOT / "lake/sources").glob("[!_]*.py")} - {"protocol", "registry"}
    assert set(LANDED) == modules
    readers = {path.stem for path in (ROOT / "transforms/chat/formats").glob("[!_]*.py")} - {"span_fields"}
    assert {module.__name__.rpartition(".")[2] for module in FORMATS.values()} == readers


def readme() -> dict[str, tuple[str, ...]]:
    """Formats of README's table, each with its kinds."""
    text = (ROOT / "README.md").read_text("utf-8")
    lines = re.findall(r"^\| (`.*`) \| .* \| (`.*`) \|$", text, flags=re.MULTILINE)
    names = re.compile(r"`(\w+)`")
    return {form: tuple(names.findall(kinds)) for forms, kinds in lines for form in names.findall(forms)}


def test_readme_lists_every_format_with_its_kinds() -> None:
    assert readme() == {name: form.KINDS for name, form in LANDED.items()}


def test_every_format_of_readme_has_a_file_in_both_halves() -> None:
    kinds_of_chats = {"traces", "synthetic"}
    for form, kinds in readme().items():
        assert (ROOT / f"lake/sources/{form}.py").is_file()
        assert (form in FORMATS) == bool(kinds_of_chats & {*kinds})
        # Pages, rows of web text and benchmark items have one reader each, whatever their format.
        assert {*kinds} <= kinds_of_chats or kinds in (("web",), ("benchmark",))


@pytest.mark.parametrize("label", [None, "yes", "TRUE", 2, 1.0, [True]])
def test_what_is_no_label_is_none_for_both_halves(label: object) -> None:
    record = {"prompt": "q", "completion": "a", "label": label}
    assert kto.lacks(record) is not None
    assert [u["problem"] for u in units_of(json.dumps(record), "kto")] == [UNREADABLE]


@pytest.mark.parametrize("context", [None, *chats.SPAN_CONTEXT_KEYS])
@pytest.mark.parametrize("trace", chats.TRACE_ID_KEYS)
@pytest.mark.parametrize("span", chats.SPAN_ID_KEYS)
def test_a_span_has_the_same_ids_for_both_halves(context: str | None, trace: str, span: str) -> None:
    ids = {trace: "t", span: "s"}
    record = {**({context: ids} if context else ids), "attributes": {"gen_ai.prompt": "q"}}
    (unit,) = units_of(json.dumps(record), "otel_genai")
    assert otel_genai.natural_key(record) == "t/s"
    assert (unit["span"]["trace_id"], unit["span"]["span_id"]) == ("t", "s")


@pytest.mark.parametrize("key", chats.END_KEYS)
@pytest.mark.parametrize("end", ["1749895200000000000", 1749895200000000000, [1749895200, 0], "2025-06-14T10:00:00Z"])
def test_a_span_ends_at_the_same_time_for_both_halves(key: str, end: object) -> None:
    record = {**IDS, key: end, "attributes": {"gen_ai.prompt": "q"}}
    (unit,) = units_of(json.dumps(record), "otel_genai")
    assert unit["span"]["ended_at"] == time(otel_genai.observed_at(record)) == time(end)


@pytest.mark.parametrize("key", documents.TEXT_KEYS)
def test_each_text_column_is_recognised_and_read(key: str) -> None:
    record = {"id": 1, key: "Some text."}
    assert recognised(record, "web") == "web_rows"
    assert extract(json.dumps(record).encode(), "").text == "Some text."


# Benchmarks: the reader is SQL


def usual_names(part: str) -> list[str]:
    """Names of the macro `usual_fields`."""
    return [name.strip(" '") for name in macro("usual_fields", part).strip("[] \n").split(",")]


def macro(name: str, *args: str) -> str:
    source = (ROOT / "transforms/macros/benchmark.sql").read_text("utf-8")
    return str(getattr(jinja2.Environment().from_string(source).module, name)(*args))


def texts(record: dict[str, Any], part: str) -> list[str]:
    """What the staging models read as a part of an item that no entry of the registry describes."""
    values = macro("item_values", "body", "json_keys(body)", macro("usual_fields", part))
    query = f"select {macro('item_texts', values)} from (select cast(? as json) as body)"
    with duckdb.connect() as connection:
        ((read,),) = connection.execute(query, [json.dumps(record)]).fetchall()
    return list(read)


GRIDS = [{"input": [[1]], "output": [[2]]}]
# Questions only beside what makes the record an item.
CONDITIONAL: dict[str, list[Case]] = {
    "input": [
        ("bbh", "target", {"input": "q", "target": "a"}),
        ("bbh", "target_scores", {"input": "q", "target_scores": {"a": 1}}),
    ],
    "messages": [("question_answer", "answer", {"messages": MESSAGES[:1], "answer": "a"})],
    "train": [("arc_agi", "test", {"train": GRIDS, "test": GRIDS})],
}


def test_questions_of_items_have_the_same_names_in_python_and_in_sql() -> None:
    assert {*usual_names("question")} == {*items.QUESTION_KEYS, *CONDITIONAL}
    assert {*items.GROUND_TRUTH_KEYS} <= {*usual_names("answer")}


@pytest.mark.parametrize("key", [*items.QUESTION_KEYS, *CONDITIONAL])
def test_each_question_is_recognised_and_read(key: str) -> None:
    for form, _, record in CONDITIONAL.get(key, [("question_answer", key, {key: "q"})]):
        assert recognised(record, "benchmark") == form
        assert texts(record, "question")[0] == ("q" if form != "arc_agi" else json.dumps(GRIDS, separators=(",", ":")))


@pytest.mark.parametrize("key", items.GROUND_TRUTH_KEYS)
def test_each_answer_of_a_file_of_answers_is_recognised_and_read(key: str) -> None:
    record = {"id": "item 1", key: "a"}
    assert recognised(record, "benchmark") == "answers_by_id"
    assert (texts(record, "answer"), texts(record, "item_key")) == (["a"], ["item 1"])


def registry() -> list[dict[str, str]]:
    with (ROOT / "contracts/reference/benchmarks.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("entry", registry(), ids=lambda entry: f"{entry['collection']} {entry['path']}")
def test_the_fields_of_each_registered_suite_are_recognised(entry: dict[str, str]) -> None:
    record: dict[str, Any] = dict.fromkeys([*entry["question"].split(), *entry["answer"].split()], "text")
    if "messages" in record:
        record["messages"] = MESSAGES[:1]
    if "train" in record:
        record = {"train": GRIDS, "test": GRIDS}
    assert recognised(record, "benchmark") is not None
