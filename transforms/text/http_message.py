"""An HTTP response as a crawler stored it, back to the entity's bytes and what its head says of them.

Crawlers store what came over the wire, or say that they do: bodies marked chunked that are not, compressed ones that
were unpacked already, cut streams. Each coding is undone as far as the bytes allow, and left alone where they deny it
(RFC 9112 section 7.1, RFC 9110 section 8.4). Cost: nothing beside decompression.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field

import brotli
import zstandard

MAX_BODY = 128 << 20  # a bomb ends here; what was unpacked until then is the document

STATUS = re.compile(rb"HTTP/\d(?:\.\d)? \d{3}[^\n]*\n|HTTP/\d(?:\.\d)? \d{3}[^\n]*$")
HEAD_END = re.compile(rb"\r?\n\r?\n")
CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")


@dataclass(frozen=True)
class Response:
    """The parts of a response; header names are in lower case, the first of equal names counts."""

    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def content_type(self) -> str:
        """The value of Content-Type, empty when there is none."""
        return self.headers.get("content-type", "")


def parse(block: bytes) -> Response | None:
    """Split a response into head and entity, with transfer and content codings undone.

    Args:
        block: status line, header lines, empty line, body.

    Returns:
        The response, or None when the block opens with no status line.

    >>> parse(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n2\\r\\nhi\\r\\n0\\r\\n\\r\\n").body
    b'hi'
    """
    if not STATUS.match(block):
        return None
    end = HEAD_END.search(block)
    head, body = (block[: end.start()], block[end.end() :]) if end else (block, b"")
    headers = header_lines(head)
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = dechunk(body)
    for coding in reversed(headers.get("content-encoding", "").lower().split(",")):
        body = decompress(body, coding.strip())
    return Response(headers, body)


def header_lines(head: bytes) -> dict[str, str]:
    """Read header lines, folded ones joined, as the charset of the protocol's text, ISO-8859-1."""
    headers: dict[str, str] = {}
    name = ""
    for line in head.decode("latin-1").splitlines()[1:]:
        if line[:1] in (" ", "\t") and name:
            headers[name] += " " + line.strip()
            continue
        label, colon, value = line.partition(":")
        name = label.strip().lower() if colon and label.strip().lower() not in headers else ""
        if name:
            headers[name] = value.strip()
    return headers


def dechunk(body: bytes) -> bytes:
    """Join the chunks; from the first place that is none, the bytes are taken as they stand."""
    parts: list[bytes] = []
    at = 0
    while size := CHUNK.match(body, at):
        length = int(size[1], 16)
        if length == 0:
            return b"".join(parts)
        parts.append(body[size.end() : size.end() + length])
        at = size.end() + length
        at += 2 if body[at : at + 2] == b"\r\n" else int(body[at : at + 1] == b"\n")
    return b"".join([*parts, body[at:]])


def decompress(body: bytes, coding: str) -> bytes:
    """Undo one content coding; a body that is not in it stays as it is, a cut one gives what there is."""
    if not body:
        return body
    if coding in ("gzip", "x-gzip"):
        return inflate(body, 31)
    if coding == "deflate":
        unpacked = inflate(body, 15)
        return unpacked if unpacked is not body else inflate(body, -15)
    if coding == "br":
        return unbrotli(body)
    if coding == "zstd":
        try:
            return zstandard.ZstdDecompressor().decompressobj().decompress(body)[:MAX_BODY]
        except zstandard.ZstdError:
            return body
    return body


def inflate(body: bytes, window: int) -> bytes:
    """Unpack zlib streams, several gzip members too, up to the bound; the body itself when it is none."""
    out: list[bytes] = []
    room = MAX_BODY
    rest = body
    while rest and room > 0:
        stream = zlib.decompressobj(window)
        try:
            piece = stream.decompress(rest, room)
        except zlib.error:
            piece = salvage(rest, window, room)
            out.append(piece)
            break
        out.append(piece)
        room -= len(piece)
        rest = stream.unused_data if stream.eof else b""
    joined = b"".join(out)
    return joined or body


def salvage(data: bytes, window: int, room: int) -> bytes:
    """Unpack the part of a damaged stream that lies before the damage."""
    stream = zlib.decompressobj(window)
    out: list[bytes] = []
    for at in range(0, len(data), 512):
        try:
            out.append(stream.decompress(data[at : at + 512], room))
        except zlib.error:
            break
    return b"".join(out)


def unbrotli(body: bytes) -> bytes:
    """Unpack brotli piece by piece, so that a cut stream gives its beginning."""
    stream = brotli.Decompressor()
    out: list[bytes] = []
    size = 0
    for at in range(0, len(body), 4096):
        try:
            out.append(stream.process(body[at : at + 4096]))
        except brotli.error:
            break
        size += len(out[-1])
        if size > MAX_BODY:
            break
    return b"".join(out) or body
