"""Formats of chats, one module each: a parsed record to its units; `transforms.chat.chats` is the table of them.

To add one: write `units` in `transforms/chat/formats/<name>.py` and put the module into `FORMATS` of
`transforms/chat/chats.py` under the name that it has in `lake.sources`. Turns of any dialect are read by
`transforms.chat.turns`, calls of a model by `transforms.chat.calls`; keys that landing or another reader looks
for as well belong into `lake.record_keys.chats`.
"""

from __future__ import annotations

from typing import Protocol

from transforms.chat.units import Unit


class ChatFormat(Protocol):
    """A module of this package, checked by mypy where it stands in `transforms.chat.chats.FORMATS`."""

    def units(self, record: object) -> list[Unit]:
        """Read one record.

        Args:
            record: parsed JSON of any shape; what landing recognised is the file, not this record.

        Returns:
            Its units. A part that cannot be read is a unit with the problem `unreadable_shape`.

        Raises:
            UnreadableShape: the record is none of this format; it becomes one such unit.
        """
        ...
