"""Kernel `document_text`: the only way from a landed payload to text.

The media type says what the payload is: an HTTP message (head and body are split, codings undone, then the body by its
own type), markup (main text by trafilatura, else all visible text), a JSON object (a row: its text column), anything
else text. Codecs are found in `transforms.text.decoding`. Text comes out without NUL and lone surrogates, lines end in
a line feed, and UTF-8 that was read in another encoding is put right (`transforms.text.mojibake`). `repair` names what
was mended, joined by commas, in this order: bom, truncated, replaced, mojibake, surrogate, nul, crlf. Media types that
are no text (images, PDF, archives) and bytes that no codec explains give an empty text and the problem `undecodable`; a
row without a text column gives `unreadable_shape`.

Cost on one core (tests/bench/bench_document_text.py): long texts in UTF-8 165 MB/s, JSON rows 75 to 130 MB/s, a page of
Markdown of 0.5 kB 0.02 ms, a captured page 18 ms, a legacy document of 10 kB 7 ms.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lake.record_keys.documents import NO_TEXT_PAYLOAD, TEXT_KEYS
from transforms.kernel import Kernel
from transforms.text import html_text, http_message, mojibake
from transforms.text.decoding import decode

INPUTS = pa.schema([("payload", pa.binary()), ("content_type", pa.string())])
RESULTS = pa.schema([(name, pa.string()) for name in ("text", "encoding", "repair", "extractor", "problem")])

MARKUP = ("text/html", "application/xhtml+xml")
XML = ("text/xml", "application/xml", "application/rss+xml", "application/atom+xml", "image/svg+xml")
TEXTUAL = re.compile(
    r"text/|application/(?:json|ld\+json|javascript|x-javascript|ecmascript|x-ndjson|yaml|x-yaml|toml|sql|x-sh|"
    r"x-tex|rtf|x-www-form-urlencoded|graphql|warc-fields|octet-stream|force-download|unknown|x-unknown)|"
    r"message/|[^/]+/[^/;]+\+(?:json|xml)$|multipart/|unknown|unk$|no-type"
)
PARAMETER = re.compile(r";\s*([\w!#$&^.+*-]+)\s*=\s*(\"(?:\\.|[^\"\\])*\"|[^;]*)", re.DOTALL)


@dataclass(frozen=True)
class Extracted:
    """One row of the results."""

    text: str = ""
    encoding: str | None = None
    repair: str | None = None
    extractor: str | None = None
    problem: str | None = None


UNDECODABLE = Extracted(problem="undecodable")


def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn payloads into texts, row by row."""
    rows = [
        extract(payload or b"", content_type or "")
        for payload, content_type in zip(batch["payload"].to_pylist(), batch["content_type"].to_pylist(), strict=True)
    ]
    columns = [pa.array([getattr(row, name) for row in rows], pa.string()) for name in RESULTS.names]
    return pa.record_batch(columns, schema=RESULTS)


DOCUMENT_TEXT = Kernel("document_text", INPUTS, RESULTS, compute)


def extract(payload: bytes, content_type: str) -> Extracted:
    """Take the text from one payload.

    Args:
        payload: the record's bytes.
        content_type: the media type with its parameters, as landing wrote it; empty where nothing is known.

    Returns:
        The row. Never raises on any bytes or media type.

    >>> extract(b"HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\n\\r\\nhi", "application/http")
    Extracted(text='hi', encoding='utf-8', repair=None, extractor=None, problem=None)
    """
    media, parameters = _media_type(content_type)
    if media == "application/http":
        response = http_message.parse(payload)
        if response is None:
            return _extract_body(payload, "", {})
        return _extract_body(response.body, *_media_type(response.content_type))
    if not media or media == "application/json":  # rows of tables land without a type of their own
        row = _parsed_row(payload)
        if row is not None:
            return _extract_row(row)
    return _extract_body(payload, media, parameters)


def _media_type(value: str) -> tuple[str, dict[str, str]]:
    """Split a Content-Type into its lower-case type and its parameters (RFC 9110 section 8.3)."""
    media, *rest = value.split(";", 1)
    pairs = PARAMETER.findall(";" + rest[0]) if rest else []
    unquoted = ((k.lower(), re.sub(r"\\(.)", r"\1", v[1:-1]) if v[:1] == '"' else v.strip()) for k, v in pairs)
    return media.strip().lower(), dict(reversed(list(unquoted)))


def _extract_body(data: bytes, media: str, parameters: dict[str, str]) -> Extracted:
    """Take the text of a document by its media type, or by its first bytes where that says nothing."""
    if not data:
        return Extracted()
    # Servers call images text/html, so the first bytes count more than the type.
    if data.startswith(NO_TEXT_PAYLOAD) or (media and not TEXTUAL.match(media) and media not in (*MARKUP, *XML)):
        return UNDECODABLE
    declared = tuple(charset for charset in [parameters.get("charset")] if charset)
    page = media in MARKUP or bool(html_text.OPENS_LIKE_HTML.match(data[:2048]) and media not in ("text/markdown",))
    markup = page or media in XML or media.endswith("+xml")
    if markup:
        declared = (*declared, *html_text.declared_charsets(data))
    decoded = decode(data, declared, parameters.get("name", ""))
    if decoded.encoding is None:
        return UNDECODABLE
    repairs = list(decoded.repairs)
    text, extractor = decoded.text, None
    if markup:
        clean = text.replace("\x00", "")
        text, extractor = html_text.extract(clean) if page else (html_text.strip_tags(clean), "tags_stripped")
        repairs += ["nul"] * (len(clean) < len(decoded.text))
    return _repaired(text, decoded.encoding, repairs, extractor)


def _parsed_row(payload: bytes) -> dict[str, Any] | None:
    """Parse a payload that is a JSON object; None for anything else."""
    if not payload.lstrip().startswith(b"{"):
        return None
    try:
        row = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _extract_row(row: dict[str, Any]) -> Extracted:
    """Take the text column of a row."""
    text = next((row[name] for name in TEXT_KEYS if isinstance(row.get(name), str)), None)
    return Extracted(problem="unreadable_shape") if text is None else _repaired(text, "utf-8", [], None)


def _repaired(text: str, encoding: str, repairs: list[str], extractor: str | None) -> Extracted:
    """Make the last repairs, those of characters, and give the row."""
    steps = (("mojibake", mojibake.undo), ("surrogate", _replace_surrogates), ("nul", _drop_nul), ("crlf", _unix_lines))
    for name, step in steps:
        better = step(text)
        if better != text and name not in repairs:
            repairs.append(name)
        text = better
    order = ("bom", "truncated", "replaced", "mojibake", "surrogate", "nul", "crlf")
    return Extracted(text, encoding, ",".join(name for name in order if name in repairs) or None, extractor)


def _replace_surrogates(text: str) -> str:
    """Join surrogate pairs and replace lone ones, which JSON escapes can write and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _drop_nul(text: str) -> str:
    """Drop NUL, which no database text may hold."""
    return text.replace("\x00", "") if "\x00" in text else text


def _unix_lines(text: str) -> str:
    """Make every line end a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
