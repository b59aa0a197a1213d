"""Turns of any dialect: whether they name who speaks."""

from __future__ import annotations

from lake.record_keys.chats import ENVELOPE_KEYS, ROLE_KEYS, ROLES


def names_role(turn: object) -> bool:
    """Say whether a turn, or the message in its envelope, names a role that the reader of chats knows."""
    if not isinstance(turn, dict):
        return False
    holders = [turn, *(turn[key] for key in ENVELOPE_KEYS if isinstance(turn.get(key), dict))]
    names = [holder.get(key) for holder in holders for key in ROLE_KEYS]
    names = [name.get("role") if isinstance(name, dict) else name for name in names]
    return any(isinstance(name, str) and name.strip().lower() in ROLES for name in names)
