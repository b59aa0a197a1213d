"""BIG-Bench tasks: input and target (https://github.com/suzgunmirac/BIG-Bench-Hard); as rows, or below `examples`."""

from __future__ import annotations

NAME = "bbh"
KINDS = ("benchmark",)
ORDER = 40
ITEMS = ("examples", None)
KEYS = ("input", "target")


def lacks(record: object) -> str | None:
    """Say what a record lacks to be an example of a task."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    if not isinstance(record.get("input"), str):
        return "no text 'input'"
    return None if "target" in record or "target_scores" in record else "no key 'target'"
