"""Files that are whole or not there, whatever kills the writer."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any


def write_whole(path: Path, data: bytes) -> None:
    """Write a file aside, fsync it and move it into place.

    Args:
        path: replaced if it is there; its folder exists.
        data: content.
    """
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.draft")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, whole."""
    write_whole(path, json.dumps(value, indent=2).encode() + b"\n")
