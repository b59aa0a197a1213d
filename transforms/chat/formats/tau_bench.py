"""tau-bench: recorded runs (`traj`, `reward`, `task_id`, `trial`) and few-shot dialogues (`messages_display`).

Yao et al., "tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains", 2024. A run's reward is
its outcome.
"""

from __future__ import annotations

from transforms.chat.blocks import UnreadableShape
from transforms.chat.calls import display_turns
from transforms.chat.formats.openai_chat import created, sampled
from transforms.chat.turns import all_turns
from transforms.chat.units import Unit, outcome, unit


def units(record: object) -> list[Unit]:
    """Read one run, or one dialogue written as lines `role: text`.

    Raises:
        UnreadableShape: it is none of these.
    """
    if not isinstance(record, dict):
        raise UnreadableShape("no object")
    display = record.get("messages_display")
    if isinstance(display, str):
        turns = display_turns(display)
    elif isinstance(record.get("traj"), list):
        turns = all_turns(record["traj"])
    else:
        raise UnreadableShape("neither 'traj' nor 'messages_display'")
    if not turns:
        raise UnreadableShape("no turn")
    return [unit(turns, created_at=created(record), outcome=outcome(record.get("reward")), provenance=sampled(record))]
