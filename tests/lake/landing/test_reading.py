"""The reading thread: a bounded way ahead, its errors raised where its events are taken, nothing left running."""

from __future__ import annotations

import io
import json
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.errors import InternalError, UsageError
from lake.landing import reading
from lake.landing.inputs import InputFile
from lake.landing.land import land
from lake.landing.results import Counts, FileEnd, FileResult
from lake.landing.streams import Stream
from tests.lake.landing.landed import rows

END = FileEnd(InputFile("/in/x", 1, root="/in", path="x"), None, "", 1, None, None, "unrecognised")


def test_the_reader_stays_within_its_bound_and_ends_with_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "AHEAD", 3 * reading.EVENT_BYTES)
    produced: list[int] = []
    blocked: queue.SimpleQueue[int] = queue.SimpleQueue()  # how many events there were whenever the reader waits

    def events() -> Iterator[Any]:
        for n in range(100):
            produced.append(n)
            yield END

    wait_for = threading.Condition.wait_for

    def noted(condition: threading.Condition, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        if threading.current_thread() is not threading.main_thread() and not predicate():
            blocked.put(len(produced))
        return wait_for(condition, predicate, timeout)

    monkeypatch.setattr(threading.Condition, "wait_for", noted)
    before = threading.active_count()
    ahead = reading.read_ahead(events())
    for taken in (1, 2, 3):
        assert next(ahead) is END
        # The reader has come to a stop: what was taken, three in the queue, one that waits for room.
        while (made := blocked.get(timeout=60)) < taken + 4:
            assert made == taken + 3  # it was full before this one was taken
        assert made == taken + 4
    ahead.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
    assert len(produced) == 7


def test_an_error_of_the_reader_is_raised_after_the_events_before_it() -> None:
    def events() -> Iterator[Any]:
        yield END
        raise OSError("disk on fire")

    ahead = reading.read_ahead(events())
    assert next(ahead) is END
    with pytest.raises(OSError, match="disk on fire"):
        next(ahead)


def test_a_file_that_cannot_be_opened_is_listed_and_the_others_land(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    for name in ("a.jsonl", "locked.jsonl", "z.jsonl"):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_text(json.dumps(chat | {"id": name}))
    opened = InputFile.open

    def open_unless_locked(file: InputFile) -> Any:
        if file.path == "locked.jsonl":
            raise PermissionError(13, "Permission denied")
        return opened(file)

    monkeypatch.setattr(InputFile, "open", open_unless_locked)
    summary = land([tmp_path / "in"], "traces", "s")
    assert (summary.read, summary.landed, summary.files) == (2, 2, 3)
    assert summary.unrecognised == (("locked.jsonl", "cannot be read: [Errno 13] Permission denied"),)
    assert rows(home, "landings", "path, state, sha256 = ''") == [
        ("a.jsonl", "done", False), ("locked.jsonl", "unrecognised", True), ("z.jsonl", "done", False)
    ]  # fmt: skip


def test_a_file_whose_first_bytes_cannot_be_read_is_closed() -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError("input/output error")

    raw = Failing()
    with pytest.raises(UsageError, match="cannot be read beyond its first 0 bytes: input/output error") as error:
        Stream(raw)
    assert raw.closed
    del error  # until here the traceback keeps the stream: it is not garbage collection that closes the file


def test_a_record_that_is_not_accounted_for_is_an_error_of_ours() -> None:
    total = Counts.total([Counts(read=3, landed=2), Counts(read=1, already=1), Counts(already=1, landed=0)])
    assert (total.read, total.landed, total.already) == (4, 2, 2)
    assert FileResult(END, total).counts == total
    with pytest.raises(InternalError, match="x: 5 records read, 2 landed, 2 already there, 0 rejected, 0 skipped"):
        FileResult(END, total + Counts(read=1))


CHAT = b'{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}'


@pytest.mark.parametrize("small", [0, 8 << 20])
def test_a_file_landed_before_is_not_parsed_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(reading, "SMALL", small)
    (tmp_path / "x.jsonl").write_bytes(CHAT)
    assert land([tmp_path / "x.jsonl"], "traces", "s").landed == 1
    monkeypatch.delattr(reading, "recognise_file")
    assert land([tmp_path / "x.jsonl"], "traces", "s").already == 1


def test_bytes_that_are_no_utf8_land_as_web_only(home: Path, tmp_path: Path) -> None:
    page = b"<!doctype html><html><body><p>caf\xe9</p></body></html>"
    (tmp_path / "p.html").write_bytes(page)
    assert land([tmp_path / "p.html"], "web", "s").landed == 1
    assert rows(home, "web", "payload") == [(page,)]
    (tmp_path / "x.jsonl").write_bytes(CHAT + b"\n" + CHAT.replace(b'"b"', b'"\xe9"'))
    summary = land([tmp_path / "x.jsonl"], "traces", "s")
    assert (summary.landed, summary.rejected) == (1, 1)
