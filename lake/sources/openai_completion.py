"""Calls of OpenAI's interface and its kin: request with response, responses, batch files, exchanges, streams."""

from __future__ import annotations

from lake.record_keys.chats import CHUNK_OBJECT, HTTP_KEYS, REQUEST_KEYS, RESPONSE_KEYS, RESPONSE_OBJECTS

NAME = "openai_completion"
KINDS = ("traces", "synthetic")
ORDER = 40
KEYS = ("request", "response", "choices", "object", "model")
ITEMS = (None, ".")


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a call."""
    if isinstance(record, list):
        chunks = record and all(isinstance(c, dict) and c.get("object") == CHUNK_OBJECT for c in record)
        return None if chunks else f"no list of {CHUNK_OBJECT}"
    if not isinstance(record, dict):
        return "records are not JSON objects"
    if record.get("object") == CHUNK_OBJECT:
        return "the other chunks of its stream (a list of them, or the recorded body, is read)"
    if all(any(isinstance(record.get(k), dict | str) for k in keys) for keys in (REQUEST_KEYS, RESPONSE_KEYS)):
        return None
    if record.get("object") in RESPONSE_OBJECTS or "custom_id" in record:
        return None
    if _is_answer(record.get("choices")) or isinstance(record.get("candidates"), list):
        return None
    body = record.get("body")
    http = any(key in record for key in HTTP_KEYS)
    return None if http and isinstance(body, dict | str) else "neither 'choices' nor a request with its response"


def _is_answer(choices: object) -> bool:
    """Say whether choices are a model's answers, not those of a multiple-choice question."""
    keys = ("message", "delta", "finish_reason")
    return (
        isinstance(choices, list)
        and bool(choices)
        and all(isinstance(c, dict) and any(k in c for k in keys) for c in choices)
    )
