"""A file's bytes: decompressed by content, hashed as they lie, read once and in order.

The compression is told by the first bytes, never by the name. Members that follow each other (`cat a.gz b.gz`) are one
stream. A file that is cut short, or broken in the middle, ends where it breaks, and `broken` says how: what was
readable is landed, the break becomes a reject.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import lzma
import tempfile
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

import zstandard

from lake.errors import UsageError

PIECE = 1 << 20  # bytes taken from the file at a time
SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zstd")


def without_suffix(path: str) -> str:
    """Return a path without the suffix of a compression."""
    return next((path[: -len(s)] for s in SUFFIXES if path.lower().endswith(s) and len(path) > len(s)), path)


def compression(head: bytes) -> str | None:
    """Say how a file that begins so is compressed: gzip, bzip2, xz, zstandard or None."""
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"BZh") and head[3:4] in b"123456789" and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90", b""):
        return "bzip2"
    if head.startswith(b"\xfd7zXZ\x00"):
        return "xz"
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[:1] in b"PQRSTUVWXYZ[\\]^_"):
        return "zstandard"
    return None


def _decompressor(kind: str) -> Any:
    if kind == "gzip":
        return zlib.decompressobj(31)
    if kind == "bzip2":
        return bz2.BZ2Decompressor()
    if kind == "xz":
        return lzma.LZMADecompressor(lzma.FORMAT_XZ)
    return zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()


class Stream(io.RawIOBase):
    """A forward-only stream of the decompressed bytes of a file.

    Attributes:
        broken: None, or how the compressed stream breaks; known once the stream has been read to its end.
        bytes_read: of the file as it lies, so far.
    """

    def __init__(self, raw: BinaryIO, on_read: Callable[[bytes], None] | None = None) -> None:
        """Take over an open file.

        Args:
            raw: the file as it lies, at its beginning.
            on_read: called with every piece of the file as it lies, for progress.

        Raises:
            UsageError: the file system fails; reading later on raises it, too.
        """
        self.broken: str | None = None
        self.bytes_read = 0
        self._raw = raw
        self._on_read = on_read
        self._sha = hashlib.sha256()
        self._spool: BinaryIO | None = None
        try:
            first = self._take(PIECE)
        except BaseException:
            self.close()  # nobody else will: the caller has no stream yet
            raise
        self.compression = compression(first)
        self._inner: Any = _decompressor(self.compression) if self.compression else None
        self._input = first
        self._ready = b"" if self._inner else first  # decompressed bytes, those before _at are read
        self._at = 0
        self._offset = 0  # in all decompressed bytes
        self._ended = False
        self._decompressed = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position in the decompressed bytes."""
        return self._offset

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, fewer at the end only; all that is left for a negative size."""
        parts: list[bytes] = []
        missing = size if size >= 0 else 1 << 62
        while missing > 0 and self._fill():
            piece = (
                self._ready[self._at : self._at + missing] if self._at or len(self._ready) > missing else self._ready
            )
            self._at += len(piece)
            missing -= len(piece)
            parts.append(piece)
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self._offset += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readline(self, size: int | None = -1) -> bytes:
        """Read up to a line end, at most `size` bytes."""
        parts: list[bytes] = []
        missing = size if size is not None and size >= 0 else 1 << 62
        while missing > 0 and self._fill():
            end = self._ready.find(b"\n", self._at, self._at + missing) + 1
            stop = end or min(len(self._ready), self._at + missing)
            parts.append(self._ready[self._at : stop])
            missing -= stop - self._at
            self._at = stop
            if end:
                break
        line = b"".join(parts)
        self._offset += len(line)
        return line

    def peek(self, size: int = 1) -> bytes:
        """Return at least `size` bytes that come next, fewer at the end only, and leave them there."""
        while len(self._ready) - self._at < size:
            more = self._next()
            if not more:
                break
            self._ready, self._at = self._ready[self._at :] + more, 0
        return self._ready[self._at :]

    def spool(self) -> BinaryIO:
        """Copy all bytes to a temporary file and return it at its beginning, for formats that are read from the end."""
        if self._spool is None:
            self._spool = tempfile.TemporaryFile()  # noqa: SIM115  closed with the stream
            while piece := self.read(PIECE):
                self._spool.write(piece)
        self._spool.seek(0)
        return self._spool

    def sha256(self) -> str:
        """Hash the file as it lies; reads what is left of it."""
        while self._take(PIECE):
            pass
        return self._sha.hexdigest()

    def close(self) -> None:
        """Close the file, and the copy of it."""
        try:
            if not self.closed:
                self._raw.close()
        finally:
            if self._spool is not None:
                self._spool.close()
            super().close()

    def _fill(self) -> bool:
        """Have some bytes ready; False at the end."""
        if self._at < len(self._ready):
            return True
        self._ready, self._at = self._next(), 0
        return bool(self._ready)

    def _take(self, size: int) -> bytes:
        try:
            piece = self._raw.read(size)
        except Exception as error:  # each file system has its own; not to be taken for a break of the compression
            name = getattr(self._raw, "name", None) or getattr(self._raw, "path", "the input")
            raise UsageError(
                f"{name} cannot be read beyond its first {self.bytes_read:,} bytes: {error}. What has landed stays; "
                "run the landing again."
            ) from error
        self._sha.update(piece)
        self.bytes_read += len(piece)
        if self._on_read is not None and piece:
            self._on_read(piece)
        return piece

    def _next(self) -> bytes:
        """Return the next decompressed bytes, nothing at the end."""
        if self._inner is None:
            return self._take(PIECE)
        while not self._ended:
            try:
                data = self._step()
            except (zlib.error, OSError, EOFError, lzma.LZMAError, zstandard.ZstdError, ValueError) as error:
                self._break(f"the {self.compression} stream breaks after {self._decompressed} bytes: {error}")
                return b""
            if data:
                self._decompressed += len(data)
                return data
        return b""

    def _step(self) -> bytes:
        """Decompress one more piece; may give nothing yet."""
        inner = self._inner
        if inner.eof:
            return self._next_member()
        data, self._input = self._input, b""
        # lzma and bz2 keep input back where their output is limited: they may go on without more.
        if not data and (not isinstance(inner, lzma.LZMADecompressor | bz2.BZ2Decompressor) or inner.needs_input):
            data = self._take(PIECE)
            if not data:
                self._break(f"the {self.compression} stream is cut short: it ends after {self._decompressed} bytes")
                return b""
        if self.compression == "gzip":
            output: bytes = inner.decompress(data, 4 * PIECE)
            self._input = inner.unconsumed_tail
            return output
        if self.compression == "zstandard":
            # One small piece at a time: this decompressor gives everything that its input holds.
            self._input = data[1 << 14 :]
            return bytes(inner.decompress(data[: 1 << 14]))
        return bytes(inner.decompress(data, 4 * PIECE))

    def _next_member(self) -> bytes:
        rest = self._inner.unused_data + self._input or self._take(PIECE)
        while rest and not rest.strip(b"\0"):  # gzip and xz allow zeros after a member, to fill a tape's block
            rest = self._take(PIECE)
        if not rest:
            self._ended = True
            return b""
        rest = rest.lstrip(b"\0")
        if len(rest) < 12:
            rest += self._take(PIECE)
        kind = compression(rest)
        if kind is None or kind != self.compression:
            self._break(
                f"bytes that are no {self.compression} follow its end, after {self._decompressed} decompressed bytes"
            )
            return b""
        self._inner, self._input = _decompressor(kind), rest
        return b""

    def _break(self, reason: str) -> None:
        self.broken = reason
        self._ended = True
