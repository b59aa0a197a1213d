"""What a file is: its container and its format, told by its first bytes and records, never by its name alone."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from lake.landing import containers, tabular
from lake.landing.checks import Block, is_utf8
from lake.landing.streams import Stream
from lake.sources.protocol import MAX_RECORD, Format, JsonFormat
from lake.sources.registry import JSON_FORMATS, json_formats_of, sniffed_formats_of

HEAD = 1 << 16  # what `sniff` sees
SAMPLE = 20  # records that decide what a file is
# What is looked at until a record is complete: at the end the longest that lands, with what stands before it.
PEEKS = (1 << 20, 16 << 20, MAX_RECORD + (4 << 20))
EARLY = 20  # formats of a lower ORDER are asked before JSON is tried


@dataclass(frozen=True)
class Reading:
    """How to read a file: its format, and for JSON formats the function that cuts its records."""

    format: Format | None
    cut: Callable[[Stream], Iterator[Block]] | None = None
    detail: str = ""


def recognise_file(stream: Stream, path: str, kind: str, named: Format | None = None) -> Reading:
    """Find out what a file is, without using up its stream.

    Args:
        stream: the file at its beginning.
        path: its path below the root, without compression suffix.
        kind: the kind that it is to land as.
        named: the format that `--format` names; else all of the kind are tried.

    Returns:
        How to read it; a reading without format says in its detail what was found and what the nearest format lacks.
    """
    head = stream.peek(HEAD)[:HEAD]
    if named and named.NAME not in JSON_FORMATS:
        return Reading(named)
    sniffed = () if named else sniffed_formats_of(kind)
    for form in sniffed:
        if form.ORDER < EARLY and form.sniff(head, path) is None:
            return Reading(form)
    detail = ""
    if head:
        candidates = (JSON_FORMATS[named.NAME],) if named else json_formats_of(kind)
        reading = _records(stream, path, candidates, named)
        if reading.format is not None:
            return reading
        detail = reading.detail
    lacks = {}
    for form in sniffed:
        if form.ORDER >= EARLY:
            missing = form.sniff(head, path)
            if missing is None:
                return Reading(form)
            lacks[form.NAME] = missing
    if not detail:
        shown = "nothing (the file is empty)" if not head else _described(head)
        nearest = next(reversed(lacks.items()), None)
        detail = f"found {shown}" + (f"; nearest is {nearest[0]}, which lacks: {nearest[1]}" if nearest else "")
    return Reading(None, detail=detail)


def _described(head: bytes) -> str:
    if head.startswith(b"PAR1"):
        return "a Parquet file"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return "what begins like JSON and is none"
    if b"\0" in head or not is_utf8(head[:-4]):
        return f"bytes that are no UTF-8 text, beginning 0x{head[:8].hex()}"
    return f"text beginning {head[:40].decode(errors='replace')!r}"


def _records(stream: Stream, path: str, candidates: Sequence[JsonFormat], named: Format | None) -> Reading:
    """Try the formats of JSON records on a sample of them."""
    detail = ""
    for size in PEEKS:
        seen = stream.peek(size)
        cutter = _container(seen, path)
        if cutter is None:
            return Reading(None)
        samples: dict[str | None, list[Any]] = {}
        for items in dict.fromkeys(i for f in candidates for i in f.ITEMS):
            samples[items] = _sample(stream, seen, cutter, items)
        tried = [(f, items, samples[items]) for f in candidates for items in f.ITEMS if samples[items]]
        verdict = recognise(tried) if tried else Verdict(None)
        if verdict.format is None and named and tried:
            verdict = Verdict(*tried[0][:2])
        if verdict.format is not None:
            return Reading(verdict.format, _with_items(cutter, verdict.items))
        detail = verdict.detail if tried else ""
        if len(seen) < size:
            break
    return Reading(None, detail=detail)


def _container(seen: bytes, path: str) -> Callable[[Stream], Iterator[Block]] | None:
    """Choose the container of records by a file's first bytes, or None if it has none."""
    if seen.startswith(b"PAR1"):
        return tabular.parquet_rows
    text = seen.removeprefix(containers.BOM).lstrip(b" \t\r\n")
    if text[:1] in (b"{", b"["):
        alone, lines = _lines_alone(text)
        # The first line decides where it can, so that a log is cut the same however it grows.
        if (alone[:1] == [True] or sum(alone) * 2 >= lines > 0) and (text[:1] == b"{" or lines > 1):
            return containers.jsonl
        return containers.json_values if text[:1] == b"{" else containers.json_list
    shape = tabular.csv_shape(seen[: 1 << 20], path)
    if shape is not None:
        delimiter = shape[0]
        return lambda stream: tabular.csv_rows(stream, delimiter)
    alone, lines = _lines_alone(text)
    return containers.jsonl if lines and sum(alone) * 2 >= lines else None


def _lines_alone(text: bytes) -> tuple[list[bool], int]:
    """Say which of the first lines are JSON by themselves (objects and lists only), and how many lines these are."""
    at = 0
    alone: list[bool] = []
    while len(alone) < SAMPLE and at < len(text):
        end = text.find(b"\n", at)
        line = text[at : end if end >= 0 else len(text)].strip()
        at = end + 1 if end >= 0 else len(text)
        if not line:
            continue
        alone.append(line[:1] in (b"{", b"[") and parsed(line) is not None)
    return alone, len(alone)


def _with_items(cutter: Callable[[Stream], Iterator[Block]], items: str | None) -> Callable[[Stream], Iterator[Block]]:
    if items is None:
        return cutter
    if items == ".":
        return containers.json_whole
    path = items
    return lambda stream: containers.json_items(stream, path)


def _sample(stream: Stream, seen: bytes, cutter: Callable[[Stream], Iterator[Block]], items: str | None) -> list[Any]:
    """Parse the first complete records of a file's beginning."""
    if cutter is tabular.parquet_rows:
        return _parquet_sample(stream) if items is None else []
    is_text = cutter in (containers.jsonl, containers.json_list, containers.json_values)
    if items is not None and not is_text:
        return []
    records = []
    for block in _with_items(cutter, items)(Stream(cast(BinaryIO, io.BytesIO(seen)))):
        for index, payload in enumerate(block.payloads):
            if index not in block.problems and (value := parsed(payload)) is not None:
                records.append(value[0])
            if len(records) >= SAMPLE:
                return records
    return records


def _parquet_sample(stream: Stream) -> list[Any]:
    block = next(tabular.parquet_rows(stream), None)
    return [json.loads(p) for p in block.payloads[:SAMPLE]] if block and not block.problems else []


@dataclass(frozen=True)
class Verdict:
    """What a sample of records was found to be: a format and how the file is cut, or None and why not."""

    format: JsonFormat | None
    items: str | None = None
    detail: str = ""


def recognise(candidates: Iterable[tuple[JsonFormat, str | None, list[Any]]]) -> Verdict:
    """Choose the format that recognises most of a file's first records.

    Args:
        candidates: (format, cut, first records so cut, parsed), in the order of trial.

    Returns:
        The verdict; where no format recognises any, the detail names what is there, the nearest format and what it
        lacks.
    """
    best: tuple[int, Verdict] = (0, Verdict(None))
    tried = list(candidates)
    for form, items, sample in tried:
        recognised = sum(form.lacks(r) is None for r in sample)
        if recognised > best[0]:
            best = (recognised, Verdict(form, items))
    return best[1] if best[0] else Verdict(None, detail=_nearest(tried))


def _nearest(tried: list[tuple[JsonFormat, str | None, list[Any]]]) -> str:
    seen = [(form, sample[0]) for form, _, sample in tried if sample]
    if not seen:
        return "no record could be read; expected JSON records"
    first = next((s[0] for _, items, s in tried if s and items is None), seen[0][1])
    keys = set(first) if isinstance(first, dict) else set()
    nearest, record = max(seen, key=lambda s: len(set(s[0].KEYS) & (set(s[1]) if isinstance(s[1], dict) else keys)))
    shape = f"keys {sorted(keys)[:12]}" if isinstance(first, dict) else f"a JSON {_json_type(first)}"
    return f"the first record has {shape}; nearest is {nearest.NAME}, which lacks: {nearest.lacks(record)}"


def _json_type(value: object) -> str:
    return {list: "list", str: "string", bool: "boolean", type(None): "null"}.get(type(value), "number")


def parsed(payload: bytes) -> tuple[Any] | None:
    """Parse JSON; None for what is none, for Python too deep, or a number too long for it."""
    try:
        return (json.loads(payload),)
    except (ValueError, RecursionError):
        return None
