"""ARC-AGI tasks, one file each: grids in train and test (https://github.com/fchollet/ARC-AGI)."""

from __future__ import annotations

NAME = "arc_agi"
KINDS = ("benchmark",)
ORDER = 30
ITEMS = (".",)
KEYS = ("train", "test")


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a task."""
    if not isinstance(record, dict):
        return "the file is no JSON object"
    for key in KEYS:
        pairs = record.get(key)
        if not isinstance(pairs, list) or not pairs:
            return f"no list {key!r}"
        if not all(isinstance(pair, dict) and isinstance(pair.get("input"), list) for pair in pairs):
            return f"{key!r} holds no pairs of grids"
    return None
