"""The model calls of one trace, put together to conversations.

An agent's later call repeats its earlier one and goes on; some instrumentations write only what is new; a trace may
hold several agents. So, in the order of the calls' start:

1. a call that begins with a whole thread so far continues it; one that a thread begins with adds nothing;
2. a call that begins in the middle (with an answer or a tool's result) is what is new: it goes to the end of the last
   thread, without what the thread already ends with;
3. any other call begins a thread.

Messages are compared by `transforms.chat.units.message_keys`; of a repeated message the first writing stays, since
answers lose reasoning when they are repeated. `models/staging/traces/stg_traces__spans.sql` says the same in SQL; a
test holds the two together.
"""

from __future__ import annotations

from transforms.chat.blocks import Message
from transforms.chat.units import message_keys


def threads(calls: list[list[Message]]) -> list[list[Message]]:
    """Return the conversations of a trace.

    Args:
        calls: per call what was given and answered, in the order of their start.

    Returns:
        Conversations in the order of their first call. Every message of every call is in one of them.
    """
    conversations: list[tuple[list[Message], list[str]]] = []
    for turns in calls:
        keys = message_keys(turns)
        if not keys:
            continue
        place = next((i for i, (_, k) in enumerate(conversations) if _begins(keys, k) or _begins(k, keys)), None)
        if place is not None:
            have, known = conversations[place]
            conversations[place] = ([*have, *turns[len(known) :]], [*known, *keys[len(known) :]])
        elif conversations and turns[0]["role"] in ("assistant", "tool"):
            have, known = conversations[-1]
            shared = _overlap(known, keys)
            conversations[-1] = ([*have, *turns[shared:]], [*known, *keys[shared:]])
        else:
            conversations.append((turns, keys))
    return [have for have, _ in conversations]


def _begins(whole: list[str], part: list[str]) -> bool:
    """Say whether a list begins with another."""
    return whole[: len(part)] == part


def _overlap(before: list[str], after: list[str]) -> int:
    """Return how many keys at the end of one list are the beginning of the other."""
    return next(n for n in range(min(len(before), len(after)), -1, -1) if before[len(before) - n :] == after[:n])
