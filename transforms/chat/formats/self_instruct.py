"""Self-Instruct tasks: one instruction with a list of instances. One record is one chat per instance.

Wang et al., "Self-Instruct: Aligning Language Models with Self-Generated Instructions", 2023. An instance without input
is a task that needs none.
"""

from __future__ import annotations

from transforms.chat.blocks import UnreadableShape, message
from transforms.chat.formats.alpaca import asked
from transforms.chat.row_facts import row_facts
from transforms.chat.units import UNREADABLE, Unit, unit


def units(record: object) -> list[Unit]:
    """Read one task.

    Raises:
        UnreadableShape: it is no such task.
    """
    if not isinstance(record, dict) or not isinstance(record.get("instruction"), str):
        raise UnreadableShape("no text 'instruction'")
    instances = record.get("instances")
    if not isinstance(instances, list) or not instances:
        raise UnreadableShape("no list 'instances'")
    facts = row_facts(record)
    return [
        unit(
            [message("user", asked(record["instruction"], instance)), message("assistant", instance["output"])],
            **facts,
        )
        if isinstance(instance, dict) and isinstance(instance.get("output"), str)
        else unit(None, problem=UNREADABLE)
        for instance in instances
    ]
