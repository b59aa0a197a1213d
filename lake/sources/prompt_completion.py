"""Prompt and completion, as texts or as lists of messages (TRL, OpenAI's older fine-tuning files)."""

from __future__ import annotations

NAME = "prompt_completion"
KINDS = ("synthetic",)
ORDER = 60
IDENTITY = "record"
KEYS = ("prompt", "completion")
PROMPTS = ("prompt", "question", "query", "problem")
COMPLETIONS = ("completion", "response", "output", "answer", "solution")


def lacks(record: object) -> str | None:
    """Say what a record lacks to be a prompt with its completion."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    for keys in (PROMPTS, COMPLETIONS):
        if not any(isinstance(record.get(key), str | list) for key in keys):
            return f"no text or turns under {' or '.join(repr(key) for key in keys)}"
    return None
