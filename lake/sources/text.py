"""Markdown, MDX and plain text, one file each: everything that is no binary file and no other format.

The bytes land as they are, in whatever encoding; `transforms.text.document_text` finds it. Where the name has no known
suffix, the media type is a guess, and carries the name beside it (RFC 2183): for texts in the encoding of a font
(`Bhojpuri-Agra`) the name is the only place that says so.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath

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
# First bytes of what is no text: images, archives, fonts, Parquet, executables, SQLite, PDF.
BINARY = (
    b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"wOFF",
    b"wOF2", b"PAR1", b"\x7fELF", b"SQLite format 3\x00", b"%PDF-", b"OggS", b"ID3", b"RIFF", b"MZ\x90",
    b"\xca\xfe\xba\xbe",
)  # fmt: skip
CONTROLS = bytes(set(range(32)) - {8, 9, 10, 12, 13, 27})


def sniff(head: bytes, path: str) -> str | None:
    """Say what a file lacks to be text: bytes that are no control characters, UTF-16 excepted."""
    if head.startswith(BINARY):
        return "the first bytes are those of a binary format"
    if PurePosixPath(path).suffix.lower() in RECORDS or _is_json(head):
        return "it is a file of records, and none of them has a text column"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or _utf16(head):
        return None
    if len(head.translate(None, CONTROLS)) < 0.98 * len(head):
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


def _utf16(head: bytes) -> bool:
    """Say whether one byte of each pair is often zero and the other next to never."""
    half = max(1, len(head) // 2)
    zeros = sorted((head[0::2].count(0), head[1::2].count(0)))
    return zeros[1] > 0.25 * half and zeros[0] < 0.02 * half


def content_type(head: bytes, path: str) -> str | None:
    """Return the media type by the suffix; without one a guess, with the file's name."""
    file = PurePosixPath(path)
    known = SUFFIXES.get(file.suffix.lower())
    if known or file.name == "..md":
        return known or "text/markdown"
    name = file.name.replace("\\", "\\\\").replace('"', '\\"')
    return f'text/plain; name="{name}"'
