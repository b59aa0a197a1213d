"""What became of a file: its end as the reader saw it, its counts, its row in raw.landings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lake.errors import InternalError
from lake.landing.inputs import InputFile
from lake.landing.records import Facts
from lake.sources.protocol import Format


@dataclass(frozen=True)
class Counts:
    """How many records of a file went where; counts are added with +, and corrected by adding negative ones.

    Attributes:
        read: records met, those of types that do not land too.
        landed: new ones.
        already: records and rejects that were there.
        rejected: new rejects.
        skipped: records of types that do not land, by type.
    """

    read: int = 0
    landed: int = 0
    already: int = 0
    rejected: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.read + other.read,
            self.landed + other.landed,
            self.already + other.already,
            self.rejected + other.rejected,
            self.skipped + other.skipped if other.skipped else self.skipped,
        )

    @staticmethod
    def total(counts: Iterable[Counts]) -> Counts:
        """Add up the counts of some files."""
        return sum(counts, Counts())


@dataclass(frozen=True)
class FileEnd:
    """The last that the reading thread says of a file.

    Attributes:
        file: the file.
        format: what it was recognised as.
        sha256: of the file as it lies.
        bytes: of the file as it lies.
        first_id: id of its first record.
        last_id: id of its last record.
        state: done or unrecognised.
        detail: what an unrecognised file was found to be, and what the nearest format lacks.
        known_counts: set where an earlier landing had the same bytes, so that none of its records was read.
    """

    file: InputFile
    format: Format | None
    sha256: str
    bytes: int
    first_id: str | None
    last_id: str | None
    state: str
    detail: str | None = None
    known_counts: Counts | None = None


@dataclass(frozen=True)
class FileResult:
    """A file whose records are committed.

    Raises:
        InternalError: a record is not accounted for.
    """

    end: FileEnd
    counts: Counts

    def __post_init__(self) -> None:
        counts = self.counts
        skipped = counts.skipped.total()
        if counts.read != counts.landed + counts.already + counts.rejected + skipped:
            raise InternalError(
                f"{self.end.file.path}: {counts.read} records read, {counts.landed} landed, {counts.already} already "
                f"there, {counts.rejected} rejected, {skipped} skipped; the sum must be equal. "
                "Please report this with the file."
            )

    def row(self, facts: Facts, batch_id: str, now: datetime) -> dict[str, Any]:
        """Make the file's row of raw.landings.

        Args:
            facts: what the landing says of all its records.
            batch_id: the batch in which the file ended.
            now: time of the batch, aware.
        """
        end, counts = self.end, self.counts
        return {
            "batch_id": batch_id, "kind": facts.kind, "source": facts.source, "path": end.file.path,
            "sha256": end.sha256, "root": end.file.root, "format": end.format.NAME if end.format else None,
            "options": facts.together, "first_id": end.first_id, "last_id": end.last_id, "read": counts.read,
            "landed": counts.landed, "already": counts.already, "rejected": counts.rejected,
            "skipped": json.dumps(dict(sorted(counts.skipped.items()))), "bytes": end.bytes, "state": end.state,
            "detail": end.detail, "landed_at": now,
        }  # fmt: skip
