"""Spans as exporters write them: OTLP JSON (nested or not), SDK dumps, bare attributes, operations mapped to spans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lake.record_keys.chats import END_KEYS, SPAN_CONTEXT_KEYS, SPAN_ID_KEYS, TRACE_ID_KEYS
from lake.sources._span_keys import span_key
from lake.times import epoch_number, epoch_time

SPAN_LIST_KEYS = (
    *("resourceSpans", "resource_spans", "scopeSpans", "scope_spans"),
    *("instrumentationLibrarySpans", "spans"),
)
NAME_PARTS = 3  # of the longest prefix by which a format knows a span: llm.request.type


def _attribute_names(record: object) -> list[str] | None:
    """Return the names of a span's attributes, of the first span of an export; None where it is no span.

    Nested attributes count by the names on their way down, joined by dots, as far as the known names go.
    """
    span = next(_spans_within(record), None)
    if not isinstance(span, dict):
        return None
    given = span.get("attributes")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return []
    if isinstance(given, list):
        return [str(a.get("key")) for a in given if isinstance(a, dict)]
    bare = not any(k in span for k in (*SPAN_ID_KEYS, *SPAN_CONTEXT_KEYS))
    return list(_dotted(given if isinstance(given, dict) else span if bare else {}, NAME_PARTS))


def _dotted(attributes: Mapping[str, Any], parts: int) -> Iterator[str]:
    for name, value in attributes.items():
        yield name
        if isinstance(value, dict) and parts > 1:
            yield from (f"{name}.{inner}" for inner in _dotted(value, parts - 1))


def all_attribute_names(record: object) -> list[str]:
    """Return the attribute names of every span of an export."""
    return [n for span in _spans_within(record) for n in _attribute_names(span) or []]


def _spans_within(record: object) -> Iterator[Any]:
    """Yield the spans of an export; of a span itself, the span; of a mapping of operations to spans, these."""
    if not isinstance(record, dict):
        return
    nested = [record[k] for k in SPAN_LIST_KEYS if isinstance(record.get(k), list)]
    if nested:
        for inner in nested[0]:
            yield from _spans_within(inner)
    elif record and all(isinstance(v, list) and v and all(_is_span(s) for s in v) for v in record.values()):
        for spans in record.values():
            yield from spans
    else:
        yield record


def _is_span(value: object) -> bool:
    """Say whether a value is a span with its ids."""
    return (
        isinstance(value, dict)
        and "attributes" in value
        and any(k in value for k in (*SPAN_ID_KEYS, *SPAN_CONTEXT_KEYS))
    )


def split(payload: bytes) -> Iterable[bytes]:
    """Cut an export into its spans; a record that is a span already keeps its bytes."""
    record = json.loads(payload)
    spans = list(_spans_within(record))
    if len(spans) == 1 and spans[0] is record:
        return [payload]
    return [json.dumps(s, ensure_ascii=False, separators=(",", ":")).encode() for s in spans]


def natural_key(record: object) -> str | None:
    """Return trace id and span id; a hash for a span without them."""
    known = record if isinstance(record, dict) else {}
    holders = [known, *(known[k] for k in SPAN_CONTEXT_KEYS if isinstance(known.get(k), dict))]
    trace_id = next((h[k] for h in holders for k in TRACE_ID_KEYS if h.get(k)), None)
    span_id = next((h[k] for h in holders for k in SPAN_ID_KEYS if h.get(k)), None)
    return span_key(trace_id, span_id, record)


def observed_at(record: object) -> str | None:
    """Return the end of a span, ISO 8601."""
    known = record if isinstance(record, dict) else {}
    value = next((known[k] for k in END_KEYS if known.get(k)), None)
    value = epoch_number(value)
    if type(value) is int and 10**17 < value < 10**19:  # nanoseconds, as OTLP has them
        ended = epoch_time(value // 1000)
        return ended.isoformat() if ended else None
    return value if isinstance(value, str) else None
