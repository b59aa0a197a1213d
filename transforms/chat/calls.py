"""One model call in any vendor's shape: what the model was given, which tools it had, what it answered.

Requests and responses of OpenAI (chat, responses, completions), Anthropic, Gemini, Ollama and LangChain, whole, as
JSON text, or streamed as server-sent events; also the `role: text` lines that OpenLIT and few-shot files keep instead
of messages. Spans, exports and recorded HTTP exchanges all hold these, so they are read here once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lake.record_keys.chats import CALL_SYSTEM_KEYS, CHUNK_OBJECT
from transforms.chat.blocks import Message, UnreadableShape, block_call, json_text, loaded, message, text_of
from transforms.chat.turns import all_turns, turns

DISPLAY = re.compile(r"^(system|developer|user|assistant|tool|function): ", re.MULTILINE)


def given(value: object) -> list[Message]:
    """Return the messages that a model was given.

    Args:
        value: a request, its list of messages, a prompt, or the JSON text of one of them.

    Raises:
        UnreadableShape: it is none of these.
    """
    value = parsed(value)
    if isinstance(value, str):
        return display_turns(value) or [message("user", value)]
    if isinstance(value, list):
        if all(isinstance(v, str) for v in value):
            return [message("user", v) for v in value]
        return all_turns([v for v in value if _tool_definition(v) is None])
    if not isinstance(value, dict):
        if value is None:
            return []
        raise UnreadableShape(f"a request is {type(value).__name__}")
    config = value["config"] if isinstance(value.get("config"), dict) else {}
    before = system_turns(value) or system_turns(config)
    for key in ("messages", "contents", "input", "prompt", "args"):
        inner = value.get(key)
        if key == "messages" and isinstance(inner, list) and any(isinstance(v, str) for v in inner):
            raise UnreadableShape("messages are texts")  # Python's repr of objects (Agno)
        if isinstance(inner, str | list | dict) and inner:
            return [*before, *given(inner)] if isinstance(inner, str | list) else [*before, *turns(inner, "user")]
    return [*before, *turns(value)]


def parsed(value: object) -> Any:
    """Return what a JSON text of an object or list holds; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        inner = loaded(value)
        return value if inner is None else inner
    return None if value in ("", "null") else value


def display_turns(text: str) -> list[Message]:
    """Read the lines `role: text` of a conversation written for people; an empty list where it does not begin so.

    A turn lasts to the next line that begins with a role. `None` is Python's word for a turn without text.

    >>> [m["role"] for m in display_turns("user: hi\\nthere\\nassistant: None\\ntool: 42")]
    ['user', 'assistant', 'tool']
    """
    marks = list(DISPLAY.finditer(text))
    if not marks or marks[0].start():
        return []
    ends = [m.start() - 1 for m in marks[1:]] + [len(text)]
    pairs = [(m[1], text[m.end() : end]) for m, end in zip(marks, ends, strict=True)]
    return [turn for role, body in pairs for turn in turns({"role": role, "content": None if body == "None" else body})]


def system_turns(request: Mapping[str, Any]) -> list[Message]:
    """Return the system prompt beside the messages, as Anthropic, Gemini and OpenAI's responses write it."""
    for key in CALL_SYSTEM_KEYS:
        value = parsed(request.get(key))
        if isinstance(value, dict) and "parts" in value:
            value = value["parts"]
        if isinstance(value, list):
            value = [
                {**v, "type": "text"} if isinstance(v, dict) and "text" in v and "type" not in v else v for v in value
            ]
        if text := text_of(value):
            return [message("system", text)]
    return []


def _tool_definition(turn: object) -> dict[str, Any] | None:
    """Return the tool schema that some exports write as a turn of role tool; None where the turn is one."""
    inner = turn.get("content") if isinstance(turn, dict) and turn.get("role") == "tool" else None
    function = inner.get("function") if isinstance(inner, dict) and inner.get("type") == "function" else None
    return inner if isinstance(function, dict) and "parameters" in function else None


def tools_text(*holders: object) -> str | None:
    """Return the tool schemas of a call as JSON text: the first of the holders that has any; null where none has."""
    for holder in holders:
        value = parsed(holder)
        if isinstance(value, list) and (definitions := [d for v in value if (d := _tool_definition(v)) is not None]):
            return json_text(definitions)
        if not isinstance(value, dict):
            continue
        for key in ("tools", "functions"):
            tools = parsed(value.get(key))
            if isinstance(tools, list | dict) and tools:
                return json_text([parsed(t) for t in tools] if isinstance(tools, list) else tools)
        if isinstance(value.get("config"), dict) and (inner := tools_text(value["config"])):
            return inner
    return None


def answers(value: object) -> list[list[Message]]:
    """Return what a model answered: one list of messages for each choice, none where there is no answer.

    Args:
        value: a response, a list of messages, parts or calls, streamed chunks, or the text of one of them.

    Raises:
        UnreadableShape: it is none of these.
    """
    value = parsed(value)
    if value is None:
        return []
    if isinstance(value, str):
        return answers(streamed) if (streamed := event_stream(value)) is not None else [[message("assistant", value)]]
    if isinstance(value, list):
        return [_list_answer(value)] if value else []
    if not isinstance(value, dict):
        raise UnreadableShape(f"an answer is {type(value).__name__}")
    for key in ("choices", "candidates"):
        if isinstance(value.get(key), list):
            return [answer for choice in value[key] for answer in _choice_answers(choice)]
    if isinstance(value.get("output"), list):
        return [all_turns(value["output"], "assistant")]
    if isinstance(value.get("generations"), list):
        return [answer for choice in _flat(value["generations"]) for answer in _choice_answers(choice)]
    if isinstance(value.get("content"), dict) and "parts" in value["content"]:
        return [turns(value["content"], "assistant")]
    if isinstance(value.get("response"), str) and "role" not in value:
        return [[message("assistant", value["response"])]]
    return [turns(value, "assistant")]


def _list_answer(items: list[Any]) -> list[Message]:
    """Read an answer that is a list: calls alone (Vercel), streamed chunks, or messages."""
    calls = [i for i in items if isinstance(i, dict) and ("toolCallId" in i or "toolName" in i) and "result" not in i]
    if len(calls) == len(items):
        return [message("assistant", None, tool_calls=[block_call(c) for c in calls])]
    if all(isinstance(i, dict) and (i.get("object") == CHUNK_OBJECT or "event" in i) for i in items):
        return next(iter(answers(_joined_chunks(items))), [])
    return all_turns(items, "assistant")


def _flat(rows: list[Any]) -> list[Any]:
    """Return a list of lists as one list."""
    return [x for row in rows for x in (row if isinstance(row, list) else [row])]


def _choice_answers(choice: object) -> list[list[Message]]:
    """Read one choice or candidate."""
    if not isinstance(choice, dict):
        raise UnreadableShape("a choice is no object")
    for key in ("message", "delta", "content", "text"):
        inner = choice.get(key)
        if isinstance(inner, dict):
            return [turns(inner, "assistant")]
        if isinstance(inner, str):
            return [[message("assistant", inner)]]
    return [turns(choice, "assistant")]


def event_stream(text: str) -> dict[str, Any] | None:
    """Return the response that server-sent events add up to; None where the text is no event stream.

    Events follow the WHATWG HTML standard, section 9.2: `data:` lines, events apart by an empty line.
    """
    if not re.match(r"\ufeff?(event|data|id|retry|):", text):
        return None
    events = [loaded(line[5:].strip()) for line in text.splitlines() if line.startswith("data:")]
    chunks = [e for e in events if isinstance(e, dict)]
    return _joined_chunks(chunks) if chunks else None


def _joined_chunks(chunks: list[Any]) -> dict[str, Any]:
    """Add streamed chunks up to one response, of OpenAI chat, OpenAI responses or Anthropic."""
    for chunk in reversed(chunks):
        if isinstance(chunk.get("response"), dict) and str(chunk.get("type")).startswith("response."):
            return dict(chunk["response"])  # the last event of OpenAI's responses repeats the whole
    if any(str(c.get("type")).startswith(("message_start", "content_block")) for c in chunks):
        return _anthropic_message(chunks)
    return _chat_completion(chunks)


def _anthropic_message(events: list[Any]) -> dict[str, Any]:
    """Add Anthropic's stream events up to one message."""
    start: dict[str, Any] = next((e["message"] for e in events if isinstance(e.get("message"), dict)), {})
    grown: dict[int, dict[str, Any]] = {}
    for event in events:
        index, delta = event.get("index"), event.get("delta")
        if not isinstance(index, int):
            continue
        if isinstance(event.get("content_block"), dict):
            grown[index] = {**event["content_block"]}
        elif isinstance(delta, dict) and index in grown:
            for source, target in (("text", "text"), ("thinking", "thinking"), ("partial_json", "partial_json")):
                if isinstance(delta.get(source), str):
                    grown[index][target] = str(grown[index].get(target) or "") + delta[source]
    for block in grown.values():
        partial = block.pop("partial_json", None)
        if partial:
            block["input"] = partial
    return {"role": "assistant", **start, "content": [grown[i] for i in sorted(grown)]}


def _chat_completion(chunks: list[Any]) -> dict[str, Any]:
    """Add OpenAI's chat chunks up to one response, a choice at a time."""
    grown: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if not isinstance(choice, dict) or not isinstance(choice.get("index", 0), int):
                continue
            delta = choice.get("delta")
            whole = grown.setdefault(choice.get("index", 0), {"role": "assistant"})
            _grow(whole, delta if isinstance(delta, dict) else {"content": choice.get("text")})
    head = {k: v for c in reversed(chunks) for k, v in c.items() if k in ("id", "model", "created")}
    return {**head, "choices": [{"index": i, "message": _finished(m)} for i, m in sorted(grown.items())]}


def _grow(whole: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add one delta to the message so far."""
    for key in ("content", "refusal", "reasoning_content", "reasoning"):
        if isinstance(delta.get(key), str):
            whole[key] = whole.get(key, "") + delta[key]
    calls = delta.get("tool_calls")
    for place, part in enumerate(calls if isinstance(calls, list) else []):
        if not isinstance(part, dict):
            continue
        index = part["index"] if isinstance(part.get("index"), int) else place
        slot = whole.setdefault("calls", {}).setdefault(
            index, {"id": None, "function": {"name": None, "arguments": ""}}
        )
        function = part["function"] if isinstance(part.get("function"), dict) else {}
        slot["id"] = slot["id"] or part.get("id")
        slot["function"]["name"] = slot["function"]["name"] or function.get("name")
        slot["function"]["arguments"] += function["arguments"] if isinstance(function.get("arguments"), str) else ""


def _finished(whole: dict[str, Any]) -> dict[str, Any]:
    """Turn the calls of a grown message into a list."""
    calls = whole.pop("calls", None)
    return {**whole, "tool_calls": [c for _, c in sorted(calls.items())]} if calls else whole
