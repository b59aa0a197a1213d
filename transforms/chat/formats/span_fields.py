"""A span's envelope in the ways that exporters write it: ids, times, attributes laid flat, events.

OTLP JSON (https://opentelemetry.io/docs/specs/otlp/, ids in hex, times as text of nanoseconds), the JavaScript and
Python SDKs' own dumps, Phoenix exports, and bare attributes without an envelope.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lake.record_keys.chats import END_KEYS, SPAN_CONTEXT_KEYS, SPAN_ID_KEYS, START_KEYS, TRACE_ID_KEYS
from transforms.chat.blocks import loaded
from transforms.chat.calls import parsed
from transforms.chat.units import time

DEPTH = 24
VALUES = ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue")


def span_ids(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ids and times of a span as fields of `transforms.chat.units.SPAN`."""
    contexts = [record, *(record[k] for k in SPAN_CONTEXT_KEYS if isinstance(record.get(k), dict))]
    trace_id = _first_text(contexts, TRACE_ID_KEYS)
    span_id = _first_text(contexts, SPAN_ID_KEYS)
    started = _first_time(record, START_KEYS)
    ended = _first_time(record, END_KEYS)
    return {
        "trace_id": trace_id if span_id else None,
        "span_id": span_id,
        "parent_id": _first_text([record], ("parentSpanId", "parent_span_id", "parent_id", "parentId")),
        "started_at": started,
        "ended_at": ended,
        "updated_at": _first_time(record, ("updatedAt", "updated_at")) or ended,
    }


def _first_text(holders: list[Any], keys: tuple[str, ...]) -> str | None:
    """Return the first text, not empty, under some keys of some objects."""
    values = (h.get(k) for h in holders for k in keys)
    return next((v for v in values if isinstance(v, str) and v), None)


def _first_time(record: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """Return the first time under some keys."""
    return next((t for k in keys if (t := time(record.get(k))) is not None), None)


def flat_attributes(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a span's attributes under dotted keys; of bare attributes these themselves."""
    given = parsed(record.get("attributes"))
    if isinstance(given, list):
        given = _key_values(given)
    flat: dict[str, Any] = {}
    _lay_flat(given if isinstance(given, dict) else dict(record), "", flat, DEPTH)
    return flat


def _key_values(pairs: list[Any]) -> dict[str, Any]:
    """Return OTLP's list of key and typed value as an object."""
    return {str(p.get("key")): _any_value(p.get("value")) for p in pairs if isinstance(p, dict)}


def _any_value(value: object) -> Any:
    """Return OTLP's typed value (AnyValue) as plain JSON."""
    if not isinstance(value, dict):
        return value
    for key in VALUES:
        if key in value:
            number = value[key] if key == "intValue" and isinstance(value[key], str) else None
            return loaded(number) if number is not None else value[key]
    inner = value.get("arrayValue")
    if isinstance(inner, dict):
        return [_any_value(v) for v in inner.get("values") or []]
    inner = value.get("kvlistValue")
    return _key_values(inner.get("values") or []) if isinstance(inner, dict) else None


def _lay_flat(value: object, key: str, flat: dict[str, Any], depth: int) -> None:
    """Write the leaves of nested attributes under dotted keys; a list of plain values is a leaf."""
    nested = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, dict | list) for v in value))
    if not nested or depth == 0 or not value:
        flat[key] = value
        return
    pairs: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
    for name, inner in pairs:
        _lay_flat(inner, f"{key}.{name}" if key else str(name), flat, depth - 1)


def rows(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the indexed attributes below a prefix, one object per index, in the order of the indices.

    Args:
        attributes: under dotted keys.
        prefix: what stands before the index and its dot.

    >>> rows({"a.1.x": 3, "a.0.x": 2, "a.0.y.z": 4, "ab": 1}, "a")
    [{'x': 2, 'y.z': 4}, {'x': 3}]
    """
    by_index: dict[int, dict[str, Any]] = {}
    start = len(prefix) + 1
    dotted = prefix + "."
    for key, value in attributes.items():
        if key.startswith(dotted):
            index, dot, rest = key[start:].partition(".")
            if dot and index.isascii() and index.isdigit() and len(index) < 10:
                by_index.setdefault(int(index), {})[rest] = value
    return [by_index[i] for i in sorted(by_index)]


def span_events(record: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return a span's events, name and fields: its own, and those that an SDK keeps as an attribute (Pydantic AI)."""
    return [*_named_events(record.get("events")), *_attribute_events(record)]


def _named_events(events: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of a span's list."""
    for event in events if isinstance(events, list) else []:
        if isinstance(event, dict) and isinstance(event.get("name"), str):
            fields = event.get("attributes", event.get("body"))
            fields = _key_values(fields) if isinstance(fields, list) else fields
            body = event.get("body")
            yield (
                event["name"],
                {**(fields if isinstance(fields, dict) else {}), **(body if isinstance(body, dict) else {})},
            )


def _attribute_events(record: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events that stand as JSON text in the attribute `events`."""
    attributes = record.get("attributes")
    attributes = _key_values(attributes) if isinstance(attributes, list) else attributes
    events = parsed(attributes.get("events")) if isinstance(attributes, dict) else None
    for event in events if isinstance(events, list) else []:
        if isinstance(event, dict) and isinstance(event.get("event.name"), str):
            yield event["event.name"], {k: v for k, v in event.items() if k != "event.name"}
