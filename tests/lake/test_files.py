"""Files appear whole or not at all, and of several writers of one name exactly one is told that it wrote it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lake import files
from lake.files import draft_of, write_if_absent, write_whole


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"one")
    write_whole(tmp_path / "a", b"two")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a", b"two")]


def test_a_writer_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_whole(tmp_path / "a", b"one")
    monkeypatch.setattr(files.os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_whole(tmp_path / "a", b"two")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a", b"one")]


def test_content_and_folder_are_on_the_disk_before_the_call_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = files.os.fsync

    def watched(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        fsync(handle)

    monkeypatch.setattr(files.os, "fsync", watched)
    write_whole(tmp_path / "a", b"one")
    assert write_if_absent(tmp_path / "b", b"one")
    drafts, folders = synced[::2], synced[1::2]
    assert [d.startswith((".a.", ".b.")) and d.endswith(".draft") for d in drafts] == [True, True]
    assert folders == [tmp_path.name] * 2


def test_of_writers_at_a_time_exactly_one_writes_a_file_that_was_absent(tmp_path: Path) -> None:
    start, wrote = threading.Barrier(8), []

    def write(number: int) -> None:
        start.wait()
        if write_if_absent(tmp_path / "a", b"%d" % number):
            wrote.append(b"%d" % number)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrote == [(tmp_path / "a").read_bytes()] and [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_folder_in_the_making_is_moved_or_gone(tmp_path: Path) -> None:
    with draft_of(tmp_path / "kept") as draft:
        draft.mkdir()
        (draft / "part").touch()
        draft.rename(tmp_path / "kept")
    with pytest.raises(ValueError, match="stopped"), draft_of(tmp_path / "lost") as draft:
        draft.mkdir()
        (draft / "part").touch()
        raise ValueError("stopped")
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]
