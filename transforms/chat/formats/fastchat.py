"""FastChat's judging files: questions (`turns`), answers (`choices[].turns`) and judge prompts.

A question is its user turns: nothing answers it, so it trains nothing, and the contamination scan sees it. An answer
file holds the assistant's turns alone; each choice is a unit. Zheng et al., "Judging LLM-as-a-Judge with MT-Bench",
2023.
"""

from __future__ import annotations

from typing import Any

from transforms.chat.blocks import Message, UnreadableShape, message
from transforms.chat.units import Unit, provenance, time, unit


def units(record: object) -> list[Unit]:
    """Read one question, answer or judge prompt.

    Raises:
        UnreadableShape: it is none of these.
    """
    if not isinstance(record, dict):
        raise UnreadableShape("no object")
    if isinstance(record.get("turns"), list):
        return [unit(_texts("user", record["turns"]))]
    if isinstance(record.get("choices"), list) and record["choices"]:
        made = provenance(generator_model=record.get("model_id"), prompt_id=record.get("question_id"))
        when = time(record.get("tstamp"))
        return [unit(_choice_turns(choice), created_at=when, provenance=made) for choice in record["choices"]]
    prompt, system = record.get("prompt_template"), record.get("system_prompt")
    if not isinstance(prompt, str):
        raise UnreadableShape("no 'turns', 'choices' or 'prompt_template'")
    return [
        unit([*([message("system", system)] if isinstance(system, str) and system else []), message("user", prompt)])
    ]


def _choice_turns(choice: object) -> list[Message]:
    """Read the turns of one answer."""
    if not isinstance(choice, dict) or not isinstance(choice.get("turns"), list):
        raise UnreadableShape("a choice has no turns")
    return _texts("assistant", choice["turns"])


def _texts(role: str, values: list[Any]) -> list[Message]:
    """Build one message per text."""
    if not values or not all(isinstance(v, str) for v in values):
        raise UnreadableShape("turns are not texts")
    return [message(role, v) for v in values]
