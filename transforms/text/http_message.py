"""An HTTP response as a crawler stored it, back to the entity's bytes and what its head says of them.

Crawlers store what came over the wire, or say that they do: bodies marked chunked that are not, compressed ones that
were unpacked already, cut streams. Each coding is undone as far as the bytes allow, and left alone where they deny it
(RFC 9112 section 7.1, RFC 9110 section 8.4). No coding is unpacked beyond the bound: a short
body of brotli can stand for gigabytes. Cost: nothing beside decompression.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field

import brotli
import zstandard

# A bomb ends here; what was unpacked until then is the document. Not landing's limit, though equal: that one counts the
# bytes of a record as they lie.
MAX_BODY = 128 << 20
PIECE = 1 << 16  # what brotli unpacks at a call

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
    headers = _header_lines(head)
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = _dechunk(body)
    # Codings are listed in the order in which they were applied.
    for coding in reversed(headers.get("content-encoding", "").lower().split(",")):
        body = _decompress(body, coding.strip())
    return Response(headers, body)


def _header_lines(head: bytes) -> dict[str, str]:
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


def _dechunk(body: bytes) -> bytes:
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


def _decompress(body: bytes, coding: str) -> bytes:
    """Undo one content coding; a body that is not in it stays as it is, a cut one gives what there is."""
    if not body:
        return body
    if coding in ("gzip", "x-gzip"):
        return _inflate(body, 31)
    # RFC 9110 section 8.4.1.2: some senders leave the zlib wrapper out.
    if coding == "deflate":
        unpacked = _inflate(body, 15)
        return unpacked if unpacked is not body else _inflate(body, -15)
    if coding == "br":
        return _unbrotli(body)
    if coding == "zstd":
        return _unzstd(body)
    return body


def _inflate(body: bytes, window: int) -> bytes:
    """Unpack zlib streams, several gzip members too, up to the bound; the body itself when it is none."""
    out: list[bytes] = []
    room = MAX_BODY
    rest = body
    while rest and room > 0:
        stream = zlib.decompressobj(window)
        try:
            piece = stream.decompress(rest, room)
        except zlib.error:
            piece = _salvage(rest, window, room)
            out.append(piece)
            break
        out.append(piece)
        room -= len(piece)
        rest = stream.unused_data if stream.eof else b""
    return b"".join(out) or body


def _salvage(data: bytes, window: int, room: int) -> bytes:
    """Unpack the part of a damaged stream that lies before the damage."""
    stream = zlib.decompressobj(window)
    out: list[bytes] = []
    for at in range(0, len(data), 512):
        try:
            out.append(stream.decompress(data[at : at + 512], room))
        except zlib.error:
            break
    return b"".join(out)


def _unbrotli(body: bytes) -> bytes:
    """Unpack brotli up to the bound, so that neither a bomb is held whole nor the beginning of a cut stream lost."""
    stream = brotli.Decompressor()
    out: list[bytes] = []
    room = MAX_BODY
    # An error takes what its call has unpacked, so the stream goes in by small pieces.
    for at in range(0, len(body), 4096):
        rest = body[at : at + 4096]
        try:
            while room > 0 and (piece := stream.process(rest, output_buffer_limit=PIECE)):
                out.append(piece[:room])
                room -= len(piece)
                rest = b""
        except brotli.error:
            break
    return b"".join(out) or body


def _unzstd(body: bytes) -> bytes:
    """Unpack the first frame of zstd up to the bound; a damaged body stays as it is."""
    stream = zstandard.ZstdDecompressor().decompressobj()
    out: list[bytes] = []
    room = MAX_BODY
    # It has no limit for a call's output; 4 bytes may stand for 128 KiB (RFC 8878, section 3.1.1.2), so 512 for 16 MiB.
    for at in range(0, len(body), 512):
        try:
            out.append(stream.decompress(body[at : at + 512])[:room])
        except zstandard.ZstdError:
            return body
        room -= len(out[-1])
        if room == 0 or stream.eof:
            break
    return b"".join(out)
