"""All formats, by what they are. A module listed here is checked against its protocol by mypy.

The table that a format stands in says what it is. `isinstance` against a protocol would look at every member of the
module each time, and cost most of the time that a small file takes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final, Literal, TypeVar

from lake.errors import FormatError
from lake.sources import (
    alpaca,
    answers_by_id,
    answers_by_key,
    anthropic,
    arc_agi,
    bbh,
    claude_code,
    fastchat,
    hh,
    html,
    keyed_questions,
    kto,
    langfuse,
    openai_chat,
    openai_completion,
    openinference,
    otel_genai,
    preference,
    prompt_completion,
    question_answer,
    self_instruct,
    sharegpt,
    tau2_bench,
    tau_bench,
    text,
    warc,
    web_rows,
)
from lake.sources.protocol import DocumentFormat, Format, JsonFormat, NamedFormat, RecordFormat, SpanFormat

AnyFormat = TypeVar("AnyFormat", bound=NamedFormat)


def _by_name(*formats: AnyFormat) -> Mapping[str, AnyFormat]:
    return {form.NAME: form for form in formats}


CHAINED_JSON_FORMATS: Final[Mapping[str, JsonFormat]] = _by_name(
    alpaca,
    answers_by_id,
    answers_by_key,
    anthropic,
    arc_agi,
    bbh,
    fastchat,
    hh,
    keyed_questions,
    kto,
    langfuse,
    openai_chat,
    openai_completion,
    preference,
    prompt_completion,
    question_answer,
    self_instruct,
    sharegpt,
    tau2_bench,
    tau_bench,
    web_rows,
)
SPAN_FORMATS: Final[Mapping[str, SpanFormat]] = _by_name(claude_code, openinference, otel_genai)
JSON_FORMATS: Final[Mapping[str, JsonFormat]] = {**CHAINED_JSON_FORMATS, **SPAN_FORMATS}
DOCUMENT_FORMATS: Final[Mapping[str, DocumentFormat]] = _by_name(html, text)
RECORD_FORMATS: Final[Mapping[str, RecordFormat]] = _by_name(warc)
SNIFFED_FORMATS: Final[Mapping[str, DocumentFormat | RecordFormat]] = {**DOCUMENT_FORMATS, **RECORD_FORMATS}
FORMATS: Final[Mapping[str, Format]] = {**JSON_FORMATS, **SNIFFED_FORMATS}


def identity_of(form: Format) -> Literal["record", "span", "document"]:
    """Say what the ids of a format's records are made of: the chain of their file, or their natural key."""
    if form.NAME in DOCUMENT_FORMATS:
        return "document"
    return "span" if form.NAME in SPAN_FORMATS else "record"


@functools.cache
def json_formats_of(kind: str) -> tuple[JsonFormat, ...]:
    """Return the formats of JSON records that may land as a kind, in the order of trial."""
    return _of_kind(JSON_FORMATS, kind)


@functools.cache
def sniffed_formats_of(kind: str) -> tuple[DocumentFormat | RecordFormat, ...]:
    """Return the formats told by a file's first bytes that may land as a kind, in the order of trial."""
    return _of_kind(SNIFFED_FORMATS, kind)


def _of_kind(formats: Mapping[str, AnyFormat], kind: str) -> tuple[AnyFormat, ...]:
    return tuple(sorted((f for f in formats.values() if kind in f.KINDS), key=lambda f: (f.ORDER, f.NAME)))


def format_named(name: str, kind: str) -> Format:
    """Return the format of a name.

    Args:
        name: as `--format` takes it.
        kind: kind that its records are to land as.

    Raises:
        FormatError: there is none, or it lands as other kinds only.
    """
    form = FORMATS.get(name)
    known = ", ".join(f.NAME for f in _of_kind(FORMATS, kind))
    if form is None:
        raise FormatError(f"format {name!r} is not known; for kind {kind} there are {known}. Pass one with --format.")
    if kind not in form.KINDS:
        raise FormatError(
            f"format {name} lands as {' or '.join(form.KINDS)}, not as {kind}. Pass --kind {form.KINDS[0]}, "
            f"or one of the formats {known}."
        )
    return form
