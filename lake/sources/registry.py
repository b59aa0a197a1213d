"""All formats, by what they are. A module listed here is checked against its protocol by mypy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
from lake.sources.protocol import DocumentFormat, Format, JsonFormat, RecordFormat, SpanFormat

JSON_FORMATS: Final[tuple[JsonFormat, ...]] = (
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
SPAN_FORMATS: Final[tuple[SpanFormat, ...]] = (claude_code, openinference, otel_genai)
DOCUMENT_FORMATS: Final[tuple[DocumentFormat, ...]] = (html, text)
RECORD_FORMATS: Final[tuple[RecordFormat, ...]] = (warc,)
ALL: Final[tuple[Format, ...]] = (*JSON_FORMATS, *SPAN_FORMATS, *DOCUMENT_FORMATS, *RECORD_FORMATS)
FORMATS: Final[Mapping[str, Format]] = {form.NAME: form for form in ALL}


def formats_of(kind: str) -> list[Format]:
    """Return the formats that may land as a kind, in the order of trial."""
    return sorted((f for f in FORMATS.values() if kind in f.KINDS), key=lambda f: (f.ORDER, f.NAME))


def format_named(name: str, kind: str) -> Format:
    """Return the format of a name.

    Args:
        name: as `--format` takes it.
        kind: kind that its records are to land as.

    Raises:
        FormatError: there is none, or it lands as other kinds only.
    """
    form = FORMATS.get(name)
    known = ", ".join(f.NAME for f in formats_of(kind))
    if form is None:
        raise FormatError(f"format {name!r} is not known; for kind {kind} there are {known}. Pass one with --format.")
    if kind not in form.KINDS:
        raise FormatError(
            f"format {name} lands as {' or '.join(form.KINDS)}, not as {kind}. Pass --kind {form.KINDS[0]}, "
            f"or one of the formats {known}."
        )
    return form
