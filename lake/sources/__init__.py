'''Formats, one module each; `lake.landing.land` asks them what a file is and how its records are cut.

Two layers read a file. A *container* (`lake.landing.containers`) turns its bytes, decompressed, into records: JSONL, a
JSON list, one JSON value, the items below a key, CSV, Parquet. A *format*, a module of this package, says whether
records are its own. Modules are found by themselves: put `lake/sources/<name>.py` there and it counts. They are small
and import nothing heavy at the top (warcio, trafilatura: inside functions).

**A JSON format** (JSONL, JSON lists and objects, CSV and Parquet rows alike):

    """Alpaca rows: instruction, input, output (https://github.com/tatsu-lab/stanford_alpaca)."""

    NAME = "alpaca"                        # the module's name
    KINDS = ("synthetic",)                 # kinds that it may land as
    ORDER = 40                             # optional, default 50; the lower is asked first; or {kind: n}
    IDENTITY = "record"                    # chain of the file's records
    KEYS = ("instruction", "input", "output")  # optional: top-level keys, to name the nearest format of a stranger

    def lacks(record: object) -> str | None:
        """Say what a parsed record lacks to be of this format; None when it is one."""
        if not isinstance(record, dict):
            return "records are not JSON objects"
        missing = [k for k in ("instruction", "output") if k not in record]
        return f"no key {missing[0]!r}" if missing else None

`ITEMS` (optional) says how a JSON file that is no JSONL is cut into records; one of these or a tuple of alternatives in
the order they are tried, default None:

    None          each line, list element, row; a single object is one record
    "."           the whole file is one record, even a list (one conversation as a bare list of messages)
    "examples"    the elements of the list below that key, or the members of the mapping there; "data.items" goes deeper
    "*"           each member of the top-level mapping; "data.*" of a mapping below; the payload is {"key": value},
                  bytes kept between the braces

`lacks` sees the records so cut. Any valid JSON record of a recognised file lands, whatever its own shape.
`def split(payload: bytes) -> Iterable[bytes]` (optional) cuts a record further, e.g. an OTLP export into spans; each
result must be valid JSON; they share the record's position. If it raises ValueError, the record is a reject.

**A span format** (landed one by one, grouped in staging) is a JSON format with

    IDENTITY = "span"
    def natural_key(record: object) -> str | None:     # "trace_id/span_id"; None: a reject, "span without ids"
    def observed_at(record: object) -> str | None:     # optional, ISO 8601: end or update time written in the span

`observed_at` may stand in any JSON format; it costs a Python parse per record.

**A document format** (the file is one record):

    NAME = "html"; KINDS = ("web",); ORDER = 80; IDENTITY = "document"
    def sniff(head: bytes, path: str) -> str | None:   # what it lacks, or None. head: the first 64 KiB, decompressed
    def content_type(head: bytes, path: str) -> str | None:        # media type for the column, e.g. "text/html"

**A record format of its own** (WARC, HH text...):

    NAME = "warc"; KINDS = ("web",); ORDER = 10; IDENTITY = "record"
    def sniff(head: bytes, path: str) -> str | None: ...
    def read(stream: BinaryIO, path: str) -> Iterator[Row | Bad | Skip]: ...

`stream` gives the decompressed bytes (gzip members joined) by `read(n)`, `readinto`, `readline`, `peek`; `tell()` is
the position in them; it is not seekable. A compressed file that is cut short ends like a file, and `stream.broken` then
says why (a text, else None); `read` yields what it has got, a half record as Bad; if the last thing is no Bad, landing
adds a reject for the break. `read` must not hold more than one record. All in the file is a Row, a Bad or a Skip.

The order of recognition: formats with `sniff` and `ORDER` below 20 (magic bytes), then JSON formats where the file is
JSON, JSONL, Parquet or CSV, then the other formats with `sniff`. Of JSON formats the one that recognises most of the
file's first 20 records wins, ties go to the lower (ORDER, NAME). `path` is below the root, without compression suffix.
'''

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from types import ModuleType
from typing import Any, BinaryIO

from lake.errors import FormatError, InternalError

SAMPLE = 20  # records that decide what a file is


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


@dataclass(frozen=True)
class Format:
    """A module of this package, checked.

    Attributes:
        name: the module's name.
        kinds: kinds that it may land as.
        identity: record, span or document.
        items: how JSON files are cut, in the order of trial.
        keys: top-level keys of its records.
        module: the module.
    """

    name: str
    kinds: tuple[str, ...]
    identity: str
    items: tuple[str | None, ...]
    keys: tuple[str, ...]
    module: ModuleType

    @property
    def is_json(self) -> bool:
        """Whether its records are JSON."""
        return hasattr(self.module, "lacks")

    def order(self, kind: str) -> tuple[int, str]:
        """Return the place in the order of trial for a kind."""
        order = getattr(self.module, "ORDER", 50)
        return (order.get(kind, 50) if isinstance(order, dict) else order), self.name

    def lacks(self, record: object) -> str | None:
        """Say what a parsed record lacks to be of this format."""
        return self._call("lacks", record)

    def sniff(self, head: bytes, path: str) -> str | None:
        """Say what a file's first bytes lack to be of this format."""
        return self._call("sniff", head, path)

    def content_type(self, head: bytes, path: str) -> str | None:
        """Return the media type of a document."""
        return self._call("content_type", head, path) if hasattr(self.module, "content_type") else None

    def read(self, stream: BinaryIO, path: str) -> Iterator[Row | Bad | Skip]:
        """Read the records of a format that cuts its own."""
        return self._call("read", stream, path)

    def optional(self, name: str) -> Callable[..., Any] | None:
        """Return one of split, natural_key, observed_at, if the module has it."""
        return getattr(self.module, name, None)

    def _call(self, name: str, *args: Any) -> Any:
        return getattr(self.module, name)(*args)


@functools.cache
def formats() -> dict[str, Format]:
    """Load all formats by name.

    Raises:
        InternalError: a module of this package does not keep to the protocol.
    """
    found = {}
    for info in pkgutil.iter_modules(__path__):
        if not info.name.startswith("_"):
            found[info.name] = _checked(importlib.import_module(f"{__name__}.{info.name}"), info.name)
    return found


def formats_of(kind: str) -> list[Format]:
    """Return the formats that may land as a kind, in the order of trial."""
    return sorted((f for f in formats().values() if kind in f.kinds), key=lambda f: f.order(kind))


def format_named(name: str, kind: str) -> Format:
    """Return the format of a name.

    Raises:
        FormatError: there is none, or it lands as other kinds only.
    """
    found = formats().get(name)
    if found is None:
        known = ", ".join(f.name for f in formats_of(kind))
        raise FormatError(f"format {name!r} is not known; for kind {kind} there are {known}. Pass one with --format.")
    if kind not in found.kinds:
        raise FormatError(
            f"format {name} lands as {' or '.join(found.kinds)}, not as {kind}. Pass --kind {found.kinds[0]}, "
            f"or one of the formats {', '.join(f.name for f in formats_of(kind))}."
        )
    return found


@dataclass(frozen=True)
class Verdict:
    """What a sample of records was found to be: a format and how the file is cut, or None and why not."""

    format: Format | None
    items: str | None = None
    detail: str = ""


def recognise(candidates: Iterable[tuple[Format, str | None, list[Any]]]) -> Verdict:
    """Choose the format that recognises most of a file's first records.

    Args:
        candidates: (format, cut, first records so cut, parsed), in the order of trial.

    Returns:
        The verdict; for a stranger the detail names what was found, the nearest format and what it lacks.
    """
    best: tuple[int, Verdict] = (0, Verdict(None))
    tried = list(candidates)
    for form, items, sample in tried:
        recognised = sum(form.lacks(r) is None for r in sample)
        if recognised > best[0]:
            best = (recognised, Verdict(form, items))
    return best[1] if best[0] else Verdict(None, detail=_stranger(tried))


def _stranger(tried: list[tuple[Format, str | None, list[Any]]]) -> str:
    seen = [(form, sample[0]) for form, _, sample in tried if sample]
    if not seen:
        return "no record could be read; expected JSON records"
    first = next((s[0] for _, items, s in tried if s and items is None), seen[0][1])
    keys = set(first) if isinstance(first, dict) else set()
    nearest, record = max(seen, key=lambda s: len(set(s[0].keys) & (set(s[1]) if isinstance(s[1], dict) else keys)))
    shape = f"keys {sorted(keys)[:12]}" if isinstance(first, dict) else f"a JSON {_json_type(first)}"
    return f"the first record has {shape}; nearest is {nearest.name}, which lacks: {nearest.lacks(record)}"


def _json_type(value: object) -> str:
    return {list: "list", str: "string", bool: "boolean", type(None): "null"}.get(type(value), "number")


def _checked(module: ModuleType, name: str) -> Format:
    missing = [a for a in ("NAME", "KINDS", "IDENTITY") if not hasattr(module, a)]
    if missing or name != module.NAME or module.IDENTITY not in ("record", "span", "document"):
        raise InternalError(
            f"lake/sources/{name}.py does not keep to the protocol of lake/sources/__init__.py: {missing}"
        )
    wanted = {
        "lacks or sniff": hasattr(module, "lacks") or hasattr(module, "sniff"),
        "read": module.IDENTITY != "record" or hasattr(module, "lacks") or hasattr(module, "read"),
        "natural_key": module.IDENTITY != "span" or hasattr(module, "natural_key"),
    }
    for function, there in wanted.items():
        if not there:
            raise InternalError(f"lake/sources/{name}.py has no {function}; see lake/sources/__init__.py.")
    items = getattr(module, "ITEMS", None)
    cuts = items if isinstance(items, tuple) else (items,)
    return Format(name, tuple(module.KINDS), module.IDENTITY, cuts, tuple(getattr(module, "KEYS", ())), module)
