"""Landing: files of any known format to the raw tables, their bytes kept, every record accounted for.

    summary = land(["logs/"], "traces", "support-bot", license="CC-BY-4.0")

Files are read and hashed once (twice where one of the same size has landed, which may be the same), in a thread that
also cuts and checks records and gives them ids; known ids and Arrow rows are worked out here, Parquet in a third
thread. 250 MB of chat records: see tests/bench/bench_land.py.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from lake.config import check_kind, lake_paths
from lake.errors import FormatError, UsageError
from lake.landing.batches import Landing
from lake.landing.inputs import InputFile, below, choose_root, find
from lake.landing.ledger import Ledger, options_json
from lake.landing.recognition import recognise_file
from lake.landing.records import Facts, FileRun, Identified, blocks, identify
from lake.landing.streams import Stream
from lake.sources import Format, format_named, formats
from lake.storage import compact

SMALL = 8 << 20  # a file up to this is read at once, and hashed before it is parsed
AHEAD = 32 << 20  # bytes of records that the reading thread may be ahead

Progress = Callable[[int, int, str], None]  # bytes of input done, bytes in all, path


@dataclass(frozen=True)
class Summary:
    """What a landing did: read = landed + already + rejected + skipped.

    Attributes:
        read: records met.
        landed: new ones.
        already: records and rejects that were there.
        rejected: new rejects; see raw.rejects.
        skipped: records of types that do not land; by type in raw.landings.
        bytes: of the files as they lie.
        seconds: wall clock.
        files: number of files.
        unrecognised: (path, what was found and what the nearest format lacks).
    """

    read: int = 0
    landed: int = 0
    already: int = 0
    rejected: int = 0
    skipped: int = 0
    bytes: int = 0
    seconds: float = 0.0
    files: int = 0
    unrecognised: tuple[tuple[str, str], ...] = field(default=())

    def as_json(self) -> dict[str, int | float]:
        """Return the counts, as `lake land --json` prints them."""
        names = ("read", "landed", "already", "rejected", "skipped", "bytes", "seconds")
        return {name: getattr(self, name) for name in names}

    def as_text(self) -> str:
        """Return the counts, and the files that were not recognised, as lines to read."""
        lines = [
            f"read {self.read:,} = landed {self.landed:,} + already {self.already:,} + rejected {self.rejected:,} "
            f"+ skipped {self.skipped:,}",
            f"{self.files:,} files, {self.bytes / 1e6:,.1f} MB in {self.seconds:,.1f} s",
        ]
        if self.rejected:
            lines.append('rejects: lake sql "select path, position, reason from raw.rejects"')
        if self.unrecognised:
            lines.append(f"not recognised: {len(self.unrecognised):,} files")
            lines += [f"  {path}: {detail}" for path, detail in self.unrecognised[:10]]
            if len(self.unrecognised) > 10:
                lines.append("  ... lake sql \"select path, detail from raw.landings where state = 'unrecognised'\"")
        return "\n".join(lines)


def land(
    paths: Sequence[str | os.PathLike[str]],
    kind: str,
    source: str,
    *,
    root: str | os.PathLike[str] | None = None,
    format: str | None = None,
    license: str | None = None,
    options: Mapping[str, Any] | None = None,
    amend: bool = False,
    home: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Land files.

    Args:
        paths: files, folders, globs, fsspec URLs.
        kind: traces, web, synthetic or benchmark.
        source: the name that the records belong to.
        root: where the source's root lies now; default as at its first landing.
        format: a module of `lake.sources`; default: recognised by content, file by file.
        license: SPDX identifier.
        options: provenance of all records, of `lake.landing.ledger.OPTIONS`: generator_model, prompt_id, suite ...
        amend: where records are there with other facts, let these count from now on.
        home: the lake; default `LAKE_HOME`.
        progress: called with (bytes done, bytes in all, path).

    Returns:
        The counts.

    Raises:
        FormatError: the only file, or none of the files, is of a known format.
        SourceError: a file lies outside the source's root, or records are there with other options.
        UsageError: a path names nothing.
    """
    started = time.monotonic()
    check_kind(kind)
    if not source or not source.strip():
        raise UsageError("--source is empty; expected a name, such as support-bot. Pass one.")
    named = format_named(format, kind) if format else None
    where = lake_paths(home)
    facts = Facts(kind, source, license, options_json(options))
    ledger = Ledger(where, facts)
    ledger.load()
    found = find(paths, where.home)
    roots = choose_root(root, ledger.roots, paths, found, source)
    runs = [FileRun(p, roots[p.where], below(p.where, roots[p.where]) or p.where) for p in found]
    landing = Landing(ledger, amend)
    reader = Reader(runs, ledger, named, amend, progress)
    try:
        for item in ahead(reader.events()):
            if isinstance(item, Identified):
                landing.take(item)
            else:
                _stop_at_stranger(item, found)
                landing.close(item)
        landing.commit()
    except BaseException:
        landing.abort()
        raise
    for name in ("landings", "rejects", kind):
        compact.join_small_files(where.table("raw", name))
    return _summary(landing.finished, time.monotonic() - started)


def _stop_at_stranger(run: FileRun, found: list[InputFile]) -> None:
    """A file that is not recognised is an error when it was named alone; in a folder it is listed."""
    if run.state == "unrecognised" and len(found) == 1 and found[0].named:
        raise FormatError(f"{run.place.where} is of no known format: {run.detail}. Name one with --format.")


def _summary(runs: list[FileRun], seconds: float) -> Summary:
    strangers = tuple((r.path, r.detail or "") for r in runs if r.state == "unrecognised")
    if runs and len(strangers) == len(runs):
        raise FormatError(
            f"none of {len(runs)} files is of a known format, the first, {strangers[0][0]}: {strangers[0][1]}. "
            "Look at them with `lake sql 'select path, detail from raw.landings'`, or name a format with --format."
        )
    return Summary(
        read=sum(r.read for r in runs),
        landed=sum(r.landed for r in runs),
        already=sum(r.already for r in runs),
        rejected=sum(r.rejected for r in runs),
        skipped=sum(r.skipped.total() for r in runs),
        bytes=sum(r.bytes for r in runs),
        seconds=round(seconds, 3),
        files=len(runs),
        unrecognised=strangers,
    )


class Reader:
    """Reads files in order: recognises them, cuts them into blocks, gives records their ids."""

    def __init__(
        self, runs: list[FileRun], ledger: Ledger, named: Format | None, amend: bool, progress: Progress | None
    ) -> None:
        self.runs = runs
        self.ledger = ledger
        self.named = named
        self.amend = amend
        self.progress = progress
        self.done_bytes = 0
        self.all_bytes = sum(r.place.size or 0 for r in runs)

    def events(self) -> Iterator[Identified | FileRun]:
        """Yield the blocks of each file, then the file itself."""
        for run in self.runs:
            begin = self.done_bytes
            try:
                raw = self._opened(run)
            except OSError as error:
                run.state, run.detail = "unrecognised", f"cannot be read: {error}"
                yield run
                continue
            if raw is not None:
                with Stream(raw, self._seen(run)) as stream:
                    yield from self._read(run, stream)
            self.done_bytes = begin + run.bytes
            self._tell(run)
            yield run

    def _opened(self, run: FileRun) -> BinaryIO | None:
        """Open a file, or settle it without parsing if it was landed before."""
        size = run.place.size
        raw = run.place.open()
        run.bytes = size or 0
        if size is not None and size <= SMALL:
            with raw:
                data = raw.read()
            run.sha256, run.bytes = hashlib.sha256(data).hexdigest(), len(data)
            return None if self._is_done(run) else cast(BinaryIO, io.BytesIO(data))
        if size in self.ledger.sizes:
            with raw:
                run.sha256 = hashlib.file_digest(cast(io.BufferedReader, raw), "sha256").hexdigest()
            if self._is_done(run):
                return None
            raw = run.place.open()
        return raw

    def _is_done(self, run: FileRun) -> bool:
        row = self.ledger.done(run.sha256, run.path, self.named.name if self.named else None, self.amend)
        if row is None:
            return False
        run.format, run.state = formats()[row["format"]], "done"
        run.first_id, run.last_id, run.read = row["first_id"], row["last_id"], row["read"]
        run.skipped.update(_json_counts(row["skipped"]))
        run.already = run.read - run.skipped.total()
        return True

    def _read(self, run: FileRun, stream: Stream) -> Iterator[Identified]:
        facts = self.ledger.facts
        reading = recognise_file(stream, run.path, facts.kind, self.named)
        if reading.format is None:
            run.state, run.detail = "unrecognised", reading.detail
        else:
            run.format, run.state = reading.format, "open"
            for block in blocks(run, reading, stream):
                _check_text(block, facts.kind)
                yield identify(run, block, facts.kind, facts.source)
            run.state = "done"
        run.sha256 = stream.sha256()
        run.bytes = stream.taken

    def _seen(self, run: FileRun) -> Callable[[bytes], None]:
        def seen(piece: bytes) -> None:
            self.done_bytes += len(piece)
            self._tell(run)

        return seen

    def _tell(self, run: FileRun) -> None:
        if self.progress is not None:
            self.progress(self.done_bytes, max(self.all_bytes, self.done_bytes), run.path)


def _check_text(block: Any, kind: str) -> None:
    """Only raw.web holds bytes; elsewhere what is no UTF-8 text is a reject."""
    if kind == "web":
        return
    for index, payload in enumerate(block.payloads):
        if index not in block.problems and not payload.isascii():
            try:
                payload.decode()
            except UnicodeDecodeError as error:
                block.problems[index] = f"not UTF-8: {error.reason} at byte {error.start}"


def _json_counts(text: str) -> dict[str, int]:
    return cast(dict[str, int], json.loads(text))


def ahead(events: Iterator[Identified | FileRun]) -> Iterator[Identified | FileRun]:
    """Run an iterator in a thread, some megabytes ahead of its reader."""
    ready: deque[tuple[Any, int]] = deque()
    turn = threading.Condition()
    state = {"bytes": 0, "stop": False}

    def run() -> None:
        last: Any = None
        try:
            for event in events:
                size = sum(map(len, event.block.payloads)) + 512 if isinstance(event, Identified) else 512
                with turn:
                    turn.wait_for(lambda: state["bytes"] < AHEAD or state["stop"])
                    if state["stop"]:
                        return
                    ready.append((event, size))
                    state["bytes"] += size
                    turn.notify_all()
        except BaseException as error:
            last = error
        with turn:
            ready.append((last, -1))
            turn.notify_all()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while True:
            with turn:
                turn.wait_for(lambda: bool(ready))
                event, size = ready.popleft()
                state["bytes"] -= max(size, 0)
                turn.notify_all()
            if size < 0:
                if event is not None:
                    raise event
                return
            yield event
    finally:
        with turn:
            state["stop"] = True
            turn.notify_all()
        thread.join()
