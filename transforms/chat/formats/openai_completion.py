"""Calls of a model's HTTP interface: a request, a response, both together, recorded exchanges, batch files, streams.

Vendors differ inside (`transforms.chat.calls` reads them all); the envelopes are the same, so the format `anthropic`
is read here too. One unit per choice: each is the request's messages and that answer. A call that failed gives its
request alone, with the outcome's verdict `error`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lake.record_keys.chats import CHUNK_OBJECT, HTTP_REQUEST_KEYS, REQUEST_KEYS, RESPONSE_KEYS
from transforms.chat.blocks import UnreadableShape
from transforms.chat.calls import answers, event_stream, given, parsed, system_turns, tools_text
from transforms.chat.formats.openai_chat import created, sampled
from transforms.chat.units import Unit, outcome, unit

REQUEST = (*REQUEST_KEYS, "params")  # the last is that of Anthropic's batch files, whose `custom_id` tells them
RESPONSE = (*RESPONSE_KEYS, "result")
ASKS = ("messages", "contents", "input", "prompt")
ANSWERS = ("choices", "candidates", "output", "content")


def units(record: object) -> list[Unit]:
    """Read one call.

    Raises:
        UnreadableShape: it is no such call.
    """
    record = parsed(record)
    if isinstance(record, list):  # the chunks of one stream
        return [unit(turns) for turns in answers(record)]
    if not isinstance(record, dict):
        raise UnreadableShape("no object")
    if record.get("object") == CHUNK_OBJECT:
        raise UnreadableShape("one chunk of a stream is no answer")
    request, response = _exchange(record)
    before = given(request) if request is not None else []
    failed = (
        isinstance(response, dict) and response.get("error") is not None and not any(k in response for k in ANSWERS)
    )
    after = [] if failed else answers(response)
    if not before and not after:
        raise UnreadableShape("neither request nor response")
    if not before and isinstance(response, dict):
        before = system_turns(response)  # a response of OpenAI's responses repeats its instructions
    facts: dict[str, Any] = {
        "tools": tools_text(request, response),
        "created_at": created(response, request, record),
        "outcome": outcome(record.get("reward"), record.get("feedback"), "error" if failed else record.get("verdict")),
        "provenance": sampled(response, request),
    }
    return [unit([*before, *answer], **facts) for answer in after or [[]]]


def _exchange(record: Mapping[str, Any]) -> tuple[object, object]:
    """Return a record's request and response, None for the one that it lacks."""
    request = _body(_first(record, REQUEST))
    response = _body(_first(record, RESPONSE))
    if "body" in record:
        if request is None and any(k in record for k in HTTP_REQUEST_KEYS):
            request = _body(record)
        elif response is None:
            response = _body(record)
    if request is None and any(k in record for k in ASKS) and not _is_response(record):
        request = record
    if (
        response is None
        and (request is None or request is record)
        and any(k in record for k in ("choices", "candidates"))
    ):
        response = record
    if request is None and response is None:
        if not _is_response(record) and not isinstance(record.get("content"), list | str):
            raise UnreadableShape("neither request nor response")
        response = record
    return request, response


def _is_response(record: Mapping[str, Any]) -> bool:
    """Say whether an object is a response by its own word; those of OpenAI's responses hold an `input` at times."""
    return record.get("object") == "response" or record.get("type") == "message"


def _first(record: Mapping[str, Any], keys: tuple[str, ...]) -> object:
    """Return the value of the first of some keys that is there."""
    return next((record[k] for k in keys if record.get(k) is not None), None)


def _body(value: object) -> object:
    """Return the body inside a recorded HTTP message, parsed: JSON, the sum of a stream, or the text."""
    value = parsed(value)
    while isinstance(value, dict) and any(k in value for k in ("body", "string")) and "role" not in value:
        inner = value.get("body", value.get("string"))
        if inner is None:
            return None
        value = parsed(inner)
    if isinstance(value, str) and (streamed := event_stream(value)) is not None:
        return streamed
    return value
