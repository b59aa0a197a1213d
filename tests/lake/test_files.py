"""Files appear whole or not at all, and of several writers of one name exactly one is told that it wrote it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lake import files
from lake.files import draft_of, place_folder, write_if_absent, write_whole


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


def place(path: Path, content: str) -> bool:
    """Make a folder with a file, and a file in a folder below it."""
    with draft_of(path) as draft:
        (draft / "below").mkdir(parents=True)
        for name in ("part", "below/part"):
            (draft / name).write_text(content)
        return place_folder(draft, path)


def test_a_folder_is_placed_whole_and_the_second_writer_is_told_that_another_was_first(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()  # empty, as a user makes one for `--out`
    assert place(tmp_path / "a", "one")
    assert not place(tmp_path / "a", "two")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert [(tmp_path / "a" / name).read_text() for name in ("part", "below/part")] == ["one", "one"]
    (tmp_path / "b").touch()
    assert not place(tmp_path / "b", "one") and (tmp_path / "b").read_text() == ""


def test_a_folder_that_cannot_be_moved_for_another_reason_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), draft_of(tmp_path / "a") as draft:
        draft.mkdir()
        place_folder(draft, tmp_path / "nowhere" / "a")
    assert list(tmp_path.iterdir()) == []


def test_of_writers_at_a_time_exactly_one_places_its_folder(tmp_path: Path) -> None:
    start, wrote = threading.Barrier(8), []

    def write(number: int) -> None:
        start.wait()
        if place(tmp_path / "a", str(number)):
            wrote.append(str(number))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert wrote == [(tmp_path / "a" / "part").read_text()] == [(tmp_path / "a" / "below" / "part").read_text()]


def test_all_of_a_folder_is_on_the_disk_before_it_is_moved_and_the_move_before_the_call_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, rename = files.os.fsync, Path.rename

    def watched_fsync(handle: int) -> None:
        steps.append(str(Path(f"/proc/self/fd/{handle}").readlink().relative_to(tmp_path)))
        fsync(handle)

    def watched_rename(path: Path, target: Path) -> Path:
        steps.append("move")
        return rename(path, target)

    monkeypatch.setattr(files.os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "rename", watched_rename)
    assert place(tmp_path / "a", "one")
    draft = steps[0].partition("/")[0]
    assert sorted(steps[:-2]) == [draft, f"{draft}/below", f"{draft}/below/part", f"{draft}/part"]
    assert steps[-2:] == ["move", "."]


KILLED = """
import os, signal, sys
from pathlib import Path
from lake.files import draft_of, place_folder
path = Path(sys.argv[1])
Path.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
with draft_of(path) as draft:
    draft.mkdir()
    (draft / "part").touch()
    place_folder(draft, path)
"""


@pytest.mark.kill
def test_a_writer_killed_before_the_move_leaves_a_draft_alone_and_does_not_hinder_the_next(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "a"], check=False)
    (draft,) = tmp_path.iterdir()
    assert killed.returncode == -signal.SIGKILL and draft.match(".a.*.draft")
    assert place(tmp_path / "a", "one")
    assert {p.name for p in tmp_path.iterdir()} == {"a", draft.name}


def test_a_folder_whose_writer_fails_is_gone(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stopped"), draft_of(tmp_path / "lost") as draft:
        draft.mkdir()
        (draft / "part").touch()
        raise ValueError("stopped")
    assert list(tmp_path.iterdir()) == []
