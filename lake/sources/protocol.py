"""What a format is: a module that satisfies one of four protocols, and what it gives.

mypy checks each module where `lake.sources.registry` lists it. Which protocol it is decides the identity of its
records: a chain for the records of a file, the natural key for spans and documents; `registry.identity_of` says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Protocol

MAX_RECORD = 128 << 20  # bytes; a longer record is a reject


@dataclass(frozen=True, slots=True)
class Row:
    """A record that was read.

    Attributes:
        payload: its bytes: a capture's block without its WARC header, a row.
        position: byte offset in the decompressed file, or the record's number from 1.
        natural_key: the URL of a capture.
        content_type: media type as the container tells it.
        observed_at: time written in the container, aware.
    """

    payload: bytes
    position: int
    natural_key: str | None = None
    content_type: str | None = None
    observed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Bad:
    """A record that cannot be read; becomes a row of raw.rejects.

    Attributes:
        payload: its bytes as far as they were read.
        position: as in `Row`.
        reason: what was found and what was expected.
        size: length of the whole record where the payload is only its beginning.
    """

    payload: bytes
    position: int
    reason: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """Records of a type that does not land (`warcinfo`, `request`, `empty line`): counted, not kept."""

    type: str
    count: int = 1


class NamedFormat(Protocol):
    """What every format says of itself.

    Attributes:
        NAME: the module's name, which `--format` takes.
        KINDS: kinds that it may land as.
        ORDER: place in the order of trial; the lower is asked first, ties go by name.
    """

    @property
    def NAME(self) -> str: ...  # noqa: D102, N802
    @property
    def KINDS(self) -> tuple[str, ...]: ...  # noqa: D102, N802
    @property
    def ORDER(self) -> int: ...  # noqa: D102, N802


class JsonFormat(NamedFormat, Protocol):
    """JSON records: JSONL, JSON lists and objects, rows of CSV and Parquet alike.

    Of the formats of a kind the one that recognises most of a file's first records wins. All valid JSON records of a
    recognised file land, whatever their own shape.

    Attributes:
        KEYS: top-level keys, to name the nearest format of a file that is of none.
        ITEMS: how a JSON file that is no JSONL is cut into records, alternatives in the order they are tried:
            None: each line, list element, row; a single object is one record.
            ".": the whole file is one record, even a list (one conversation as a bare list of messages).
            "examples": the elements of the list below that key, or the members of the mapping there; "data.items"
            goes deeper.
            "*": each member of the top-level mapping; "data.*" of a mapping below; the payload is {"key": value},
            bytes kept between the braces.
    """

    @property
    def KEYS(self) -> tuple[str, ...]: ...  # noqa: D102, N802
    @property
    def ITEMS(self) -> tuple[str | None, ...]: ...  # noqa: D102, N802

    def lacks(self, record: object) -> str | None:
        """Say what a parsed record, cut as ITEMS says, lacks to be of this format; None when it is one."""
        ...


class SpanFormat(JsonFormat, Protocol):
    """Spans and events in JSON: landed one by one, each under its natural key, and grouped in staging."""

    def split(self, payload: bytes) -> Iterable[bytes]:
        """Cut a record into its spans, e.g. an OTLP export; each is valid JSON, and they share its position.

        Raises:
            ValueError: it cannot be cut; it becomes a reject.
        """
        ...

    def natural_key(self, record: object) -> str | None:
        """Return "trace id/span id"; None makes the record a reject, "span without ids"."""
        ...

    def observed_at(self, record: object) -> str | None:
        """Return the end or update time that is written in the span, ISO 8601; it costs a parse per record."""
        ...


class DocumentFormat(NamedFormat, Protocol):
    """Files that are one record each: a page, a text."""

    def sniff(self, head: bytes, path: str) -> str | None:
        """Say what a file lacks to be of this format; None when it is one.

        Args:
            head: its first 64 KiB, decompressed.
            path: below the root, without compression suffix.
        """
        ...

    def content_type(self, head: bytes, path: str) -> str | None:
        """Return the media type, e.g. "text/html"."""
        ...


class RecordFormat(NamedFormat, Protocol):
    """Files of records that no container cuts: WARC."""

    def sniff(self, head: bytes, path: str) -> str | None:
        """Say what a file lacks to be of this format, as `DocumentFormat.sniff`."""
        ...

    def read(self, stream: BinaryIO, path: str) -> Iterator[Row | Bad | Skip]:
        """Read the records; all in the file is a Row, a Bad or a Skip, and no more than one record is held.

        Args:
            stream: the decompressed bytes (gzip members joined), by `read(n)`, `readinto`, `readline`, `peek`; not
                seekable, `tell()` is the position. A compressed file that is cut short ends like a file, and
                `stream.broken` then says why: landing adds a reject for it where the last thing read is no Bad.
            path: as in `sniff`.
        """
        ...


Format = JsonFormat | SpanFormat | DocumentFormat | RecordFormat
