"""Alpaca rows: instruction, input, output (https://github.com/tatsu-lab/stanford_alpaca). One record is one chat.

The user's turn is instruction and input, an empty line between; Alpaca's own frame of words ("Below is an instruction
...") is a template and left to the job. GPTeacher calls the answer `response`; LLaMA-Factory adds `system`, `history`.
"""

from __future__ import annotations

from lake.record_keys.chats import ANSWER_KEYS
from transforms.chat.blocks import UnreadableShape, message
from transforms.chat.row_facts import history_messages, row_facts, system_message
from transforms.chat.units import Unit, unit


def units(record: object) -> list[Unit]:
    """Read one row.

    Raises:
        UnreadableShape: it is no such row.
    """
    if not isinstance(record, dict) or not isinstance(record.get("instruction"), str):
        raise UnreadableShape("no text 'instruction'")
    answer = next((record[key] for key in ANSWER_KEYS if isinstance(record.get(key), str)), None)
    if answer is None:
        raise UnreadableShape("no text 'output'")
    turns = [*system_message(record), *history_messages(record), message("user", asked(record["instruction"], record))]
    return [unit([*turns, message("assistant", answer)], **row_facts(record))]


def asked(instruction: str, record: dict[str, object]) -> str:
    """Join an instruction and its input, an empty line between.

    Args:
        instruction: the task.
        record: the row, which may hold an `input`.
    """
    given = record.get("input")
    return "\n\n".join(part for part in (instruction, given) if isinstance(part, str) and part)
