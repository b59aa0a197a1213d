"""Files and folders that are whole or not there, whatever kills the writer: written aside, then moved into place."""

from __future__ import annotations

import errno
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Give an unused name beside a path, for a file or folder in the making.

    Args:
        path: where it will be; its folder exists.

    Yields:
        A hidden path that ends in `.draft`. What still lies there when the block ends is removed.
    """
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.draft")
    try:
        yield draft
    finally:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, in place of an older one if there is one.

    Args:
        path: its folder exists.
        data: content.
    """
    with draft_of(path) as draft:
        _write_new(draft, data)
        draft.replace(path)
    fsync(path.parent)


def write_if_absent(path: Path, data: bytes) -> bool:
    """Write a file unless it is there; of several writers at a time exactly one does.

    Args:
        path: its folder exists.
        data: content.

    Returns:
        Whether it was written.
    """
    with draft_of(path) as draft:
        _write_new(draft, data)
        try:
            # A rename would replace what another writer has put there; a link fails.
            os.link(draft, path)
        except FileExistsError:
            return False
    fsync(path.parent)
    return True


def place_folder(draft: Path, path: Path) -> bool:
    """Move a finished folder to its place, unless something is there; of several writers at a time exactly one does.

    All that is in the folder is on the disk before it is moved, however it was written.

    Args:
        draft: the folder, as `draft_of` named it.
        path: where it will be: on the same file system, and not there or an empty folder.

    Returns:
        Whether it was moved; if not, another writer was first, and the draft is where it was.
    """
    for folder, _, names in os.walk(draft):
        for name in names:
            fsync(Path(folder, name))
        fsync(Path(folder))
    try:
        draft.rename(path)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            return False
        raise
    fsync(path.parent)
    return True


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, in place of an older file if there is one.

    Args:
        path: its folder exists.
        value: of what JSON has: objects, lists, texts, numbers, true, false, null.
    """
    write_whole(path, json.dumps(value, indent=2).encode() + b"\n")


def fsync(path: Path) -> None:
    """Have a file's content, or a folder's entries, on the disk before going on."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_new(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
