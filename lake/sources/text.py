"""Markdown, MDX and plain text, one file each: everything that is no binary file and no other format.

The bytes land as they are, in whatever encoding; `transforms.text.document_text` finds it. Where the name has no known
suffix, the media type is a guess, and carries the name beside it (RFC 2183): for texts in the encoding of a font
(`Bhojpuri-Agra`) the name is the only place that says so.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from lake.record_keys.documents import NO_TEXT_FILE, has_control_bytes, utf16_codec

NAME = "text"
KINDS = ("web",)
ORDER = 90

SUFFIXES = {
    ".md": "text/markdown",
    ".mdx": "text/markdown",
    ".markdown": "text/markdown",
    ".txt": "text/plain",
    ".text": "text/plain",
    ".rst": "text/x-rst",
    ".adoc": "text/asciidoc",
    ".tex": "application/x-tex",
    ".org": "text/org",
}
# Suffixes of files of records, which are never one document.
RECORDS = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".arrow", ".warc", ".arc")


def sniff(head: bytes, path: str) -> str | None:
    """Say what a file lacks to be text: bytes that are no control characters, UTF-16 excepted.

    Arguments as for `DocumentFormat.sniff`.
    """
    if head.startswith(NO_TEXT_FILE):
        return "the first bytes are those of a binary format"
    if PurePosixPath(path).suffix.lower() in RECORDS or _is_json(head):
        return "it is a file of records, and none of them has a text column"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or utf16_codec(head):
        return None
    if has_control_bytes(head):
        return "more than 2 % of its bytes are control characters"
    return None


def _is_json(head: bytes) -> bool:
    """Say whether the first line is a JSON object: rows of no known shape are no document."""
    first = head.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", 1)[0]
    if not first.startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def content_type(head: bytes, path: str) -> str | None:
    """Return the media type by the suffix; without one a guess, with the file's name.

    Arguments as for `DocumentFormat.sniff`.
    """
    file = PurePosixPath(path)
    known = SUFFIXES.get(file.suffix.lower())
    if known or file.name == "..md":
        return known or "text/markdown"
    name = file.name.replace("\\", "\\\\").replace('"', '\\"')
    return f'text/plain; name="{name}"'
