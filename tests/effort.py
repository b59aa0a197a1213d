"""How hard the suite tries: `make attack` sets HYPOTHESIS_PROFILE=attack, which multiplies each number given here."""

from __future__ import annotations

import os

from hypothesis import settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
EXAMPLES = {"default": 1, "attack": 20}[PROFILE]
ROUNDS = {"default": 1, "attack": 5}[PROFILE]


def examples(number: int) -> int:
    """Return how many examples a property is tried on, for `@settings(max_examples=...)`."""
    return number * EXAMPLES


def rounds(number: int) -> int:
    """Return how often a test kills what it kills."""
    return number * ROUNDS


def load_profile() -> None:
    """Set what properties without a number of their own are tried on."""
    settings.register_profile("lakewright", max_examples=examples(100), deadline=None)
    settings.load_profile("lakewright")
