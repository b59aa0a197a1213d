"""The reading thread of a landing: recognises files, cuts them into blocks, gives records their ids.

A file is read and hashed once; twice where one of the same size has landed, which may be the same.
"""

from __future__ import annotations

import hashlib
import io
import json
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from typing import Any, BinaryIO, cast

from lake.landing.blocks import read_blocks
from lake.landing.checks import Block
from lake.landing.inputs import InputFile
from lake.landing.ledger import Ledger
from lake.landing.recognition import recognise_file
from lake.landing.records import ChainState, Identified, identify
from lake.landing.results import Counts, FileEnd
from lake.landing.streams import Stream
from lake.sources.protocol import Format
from lake.sources.registry import FORMATS

SMALL = 8 << 20  # a file up to this is read at once, and hashed before it is parsed
AHEAD = 32 << 20  # bytes of records that the reading thread may be ahead
EVENT_BYTES = 512  # what an event counts beside its payloads, so that a million empty files are bounded too

Progress = Callable[[int, int, str], None]  # bytes of input done, bytes in all, path
Event = Identified | FileEnd


class Reader:
    """Reads files in order."""

    def __init__(
        self, files: list[InputFile], ledger: Ledger, named: Format | None, amend: bool, progress: Progress | None
    ) -> None:
        """Prepare to read files.

        Args:
            files: with their roots, in order.
            ledger: the source's landings: a file that is done is not read again.
            named: the format that `--format` names.
            amend: whether a file that is done with other options is read again, instead of an error.
            progress: called with (bytes done, bytes in all, path).
        """
        self._files = files
        self._ledger = ledger
        self._named = named
        self._amend = amend
        self._progress = progress
        self._done_bytes = 0
        self._all_bytes = sum(file.size or 0 for file in files)

    def events(self) -> Iterator[Event]:
        """Yield the blocks of each file, then its end.

        Raises:
            SourceError: a file is done with other options.
            UsageError: a file cannot be read to its end.
        """
        for file in self._files:
            bytes_before = self._done_bytes
            end = yield from self._read(file)
            self._done_bytes = bytes_before + end.bytes  # whether it was read twice or not at all
            self._report(file)
            yield end

    def _read(self, file: InputFile) -> Generator[Event, None, FileEnd]:
        chain = ChainState()
        try:
            raw = self._opened(file, chain)
        except OSError as error:
            return _file_end(file, chain, "unrecognised", f"cannot be read: {error}")
        if isinstance(raw, FileEnd):
            return raw
        facts = self._ledger.facts
        with Stream(raw, lambda piece: self._count(file, piece)) as stream:
            reading = recognise_file(stream, file.path, facts.kind, self._named)
            chain.format = reading.format
            if reading.format is not None:
                for block in read_blocks(file, reading.format, reading.cut, stream):
                    _reject_what_is_no_text(block, facts.kind)
                    yield identify(chain, file, block, facts)
            chain.sha256, chain.bytes = stream.sha256(), stream.bytes_read
        state, detail = ("done", None) if reading.format else ("unrecognised", reading.detail)
        return _file_end(file, chain, state, detail)

    def _opened(self, file: InputFile, chain: ChainState) -> BinaryIO | FileEnd:
        """Open a file at its beginning, or say what is known of it if it was landed before."""
        raw = file.open()
        chain.bytes = file.size or 0
        if file.size is not None and file.size <= SMALL:
            with raw:
                data = raw.read()
            chain.sha256, chain.bytes = hashlib.sha256(data).hexdigest(), len(data)
            return self._end_if_done(file, chain) or cast(BinaryIO, io.BytesIO(data))
        if file.size in self._ledger.sizes:
            with raw:
                chain.sha256 = hashlib.file_digest(cast(io.BufferedReader, raw), "sha256").hexdigest()
            return self._end_if_done(file, chain) or file.open()
        return raw

    def _end_if_done(self, file: InputFile, chain: ChainState) -> FileEnd | None:
        """Return the end of a file whose bytes an earlier landing has done, else None."""
        format_name = self._named.NAME if self._named else None
        row = self._ledger.earlier_landing(chain.sha256, file.path, format_name, self._amend)
        if row is None:
            return None
        skipped = Counter(cast(dict[str, int], json.loads(row["skipped"])))
        counts = Counts(read=row["read"], already=row["read"] - skipped.total(), skipped=skipped)
        chain.format, chain.first_id, chain.last_id = FORMATS[row["format"]], row["first_id"], row["last_id"]
        return _file_end(file, chain, "done", known_counts=counts)

    def _count(self, file: InputFile, piece: bytes) -> None:
        self._done_bytes += len(piece)
        self._report(file)

    def _report(self, file: InputFile) -> None:
        if self._progress is not None:
            self._progress(self._done_bytes, max(self._all_bytes, self._done_bytes), file.path)


def _file_end(
    file: InputFile, chain: ChainState, state: str, detail: str | None = None, known_counts: Counts | None = None
) -> FileEnd:
    return FileEnd(
        file, chain.format, chain.sha256, chain.bytes, chain.first_id, chain.last_id, state, detail, known_counts
    )


def _reject_what_is_no_text(block: Block, kind: str) -> None:
    """Mark the records that are not UTF-8, except for raw.web, the one table that holds bytes."""
    if kind == "web":
        return
    for index, payload in enumerate(block.payloads):
        if index not in block.problems and not payload.isascii():
            try:
                payload.decode()
            except UnicodeDecodeError as error:
                block.problems[index] = f"not UTF-8: {error.reason} at byte {error.start}"


class _ByteQueue:
    """A queue from one thread to another that is full by bytes, not by items."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: deque[tuple[Any, int]] = deque()
        self._bytes = 0
        self._is_closed = False
        self._changed = threading.Condition()

    def put(self, item: Any, size: int) -> bool:
        """Add an item, once there is room; False: nobody will take it any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < self._limit or self._is_closed)
            self._items.append((item, size))
            self._bytes += size
            self._changed.notify_all()
            return not self._is_closed

    def get(self) -> Any:
        """Take the oldest item; waits for one."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._items))
            item, size = self._items.popleft()
            self._bytes -= size
            self._changed.notify_all()
            return item

    def close(self) -> None:
        """Take nothing any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


def read_ahead(events: Iterator[Event]) -> Iterator[Event]:
    """Run a reader in a thread, some megabytes ahead of whoever takes its events.

    Raises:
        BaseException: what the reader raised, once the events before it are taken.
    """
    queue = _ByteQueue(AHEAD)

    def run() -> None:
        try:
            for event in events:
                if not queue.put(event, EVENT_BYTES + (event.bytes if isinstance(event, Identified) else 0)):
                    return
            queue.put(None, 0)
        except BaseException as error:
            queue.put(error, 0)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while (event := queue.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event
    finally:
        queue.close()  # where the caller stops early, the thread is to stop, too
        thread.join()
