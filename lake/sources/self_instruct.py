"""Self-Instruct tasks: an instruction with its instances (https://github.com/yizhongw/self-instruct)."""

from __future__ import annotations

NAME = "self_instruct"
KINDS = ("synthetic",)
ORDER = 30
KEYS = ("instruction", "instances")
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a Self-Instruct task."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    if not isinstance(record.get("instruction"), str):
        return "no text 'instruction'"
    instances = record.get("instances")
    if not isinstance(instances, list) or not all(isinstance(instance, dict) for instance in instances):
        return "no list of objects 'instances'"
    return None
