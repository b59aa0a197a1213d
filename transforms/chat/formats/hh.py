"""HH-RLHF: two dialogues as one text each, turns marked "Human:" and "Assistant:". One record is one pair.

Bai et al., "Training a Helpful and Harmless Assistant with RLHF", 2022 (https://github.com/anthropics/hh-rlhf). The
turns that both dialogues begin with are the prompt. Spaces around a turn belong to the marks and go.
"""

from __future__ import annotations

import re

from lake.record_keys.chats import SPEAKERS
from transforms.chat.blocks import Message, UnreadableShape, message
from transforms.chat.formats.preference import pair
from transforms.chat.units import Unit

TURN = re.compile(rf"(?:^\s*|\n\n)({'|'.join(SPEAKERS)}):")


def units(record: object) -> list[Unit]:
    """Read one pair.

    Raises:
        UnreadableShape: it is no such pair.
    """
    if not isinstance(record, dict):
        raise UnreadableShape("no object")
    return [pair(record, [], _dialogue(record.get("chosen")), _dialogue(record.get("rejected")))]


def _dialogue(text: object) -> list[Message]:
    """Split one dialogue into turns.

    >>> [(m["role"], m["content"]) for m in _dialogue("\\n\\nHuman: hi\\n\\nAssistant: hello")]
    [('user', 'hi'), ('assistant', 'hello')]
    """
    if not isinstance(text, str):
        raise UnreadableShape("a dialogue is no text")
    before, *rest = TURN.split(text)
    if before.strip() or not rest:
        raise UnreadableShape("a dialogue does not open with 'Human:' or 'Assistant:'")
    return [message(SPEAKERS[who], words.strip()) for who, words in zip(rest[::2], rest[1::2], strict=True)]
