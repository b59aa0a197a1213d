"""Landing: files of any known format to the raw tables, their bytes kept, every record accounted for.

    summary = land(["logs/"], "traces", "support-bot", license="CC-BY-4.0")

Three threads: one reads, hashes and cuts files and gives records their ids (`reading`); this one works out what is new
and makes Arrow rows (`loader`); one writes Parquet (`batches`). They share nothing that two of them write. 240 MB of
chat records: see tests/bench/bench_land.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lake.config import check_kind, lake_paths
from lake.errors import FormatError, UsageError
from lake.landing.inputs import InputFile, find, place_below_roots
from lake.landing.ledger import Ledger, options_json
from lake.landing.loader import Loader
from lake.landing.reading import Progress, Reader, read_ahead
from lake.landing.records import Facts, Identified
from lake.landing.results import Counts, FileEnd, FileResult
from lake.sources.registry import format_named
from lake.storage import compact


@dataclass(frozen=True)
class Summary:
    """What a landing did: read = landed + already + rejected + skipped.

    Attributes:
        read: records met.
        landed: new ones.
        already: records and rejects that were there.
        rejected: new rejects; see raw.rejects.
        skipped: records of types that do not land; by type in raw.landings.
        bytes: of the files as they lie.
        seconds: wall clock.
        files: number of files.
        unrecognised: (path, what was found and what the nearest format lacks).
    """

    read: int = 0
    landed: int = 0
    already: int = 0
    rejected: int = 0
    skipped: int = 0
    bytes: int = 0
    seconds: float = 0.0
    files: int = 0
    unrecognised: tuple[tuple[str, str], ...] = field(default=())

    def as_json(self) -> dict[str, int | float]:
        """Return the counts, as `lake land --json` prints them."""
        names = ("read", "landed", "already", "rejected", "skipped", "bytes", "seconds")
        return {name: getattr(self, name) for name in names}

    def as_text(self) -> str:
        """Return the counts, and the files that were not recognised, as lines to read."""
        lines = [
            f"read {self.read:,} = landed {self.landed:,} + already {self.already:,} + rejected {self.rejected:,} "
            f"+ skipped {self.skipped:,}",
            f"{self.files:,} files, {self.bytes / 1e6:,.1f} MB in {self.seconds:,.1f} s",
        ]
        if self.rejected:
            lines.append('rejects: lake sql "select path, position, reason from raw.rejects"')
        if self.unrecognised:
            lines.append(f"not recognised: {len(self.unrecognised):,} files")
            lines += [f"  {path}: {detail}" for path, detail in self.unrecognised[:10]]
            if len(self.unrecognised) > 10:
                lines.append("  ... lake sql \"select path, detail from raw.landings where state = 'unrecognised'\"")
        return "\n".join(lines)


def land(
    paths: Sequence[str | os.PathLike[str]],
    kind: str,
    source: str,
    *,
    root: str | os.PathLike[str] | None = None,
    format: str | None = None,
    license: str | None = None,
    options: Mapping[str, Any] | None = None,
    amend: bool = False,
    home: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Land files.

    Args:
        paths: files, folders, globs, fsspec URLs.
        kind: traces, web, synthetic or benchmark.
        source: the name that the records belong to.
        root: where the source's root lies now; default as at its first landing.
        format: a module of `lake.sources`; default: recognised by content, file by file.
        license: SPDX identifier.
        options: provenance of all records, of `lake.landing.ledger.OPTIONS`: generator_model, prompt_id, suite ...
        amend: where records are there with other facts, let these count from now on.
        home: the lake; default `LAKE_HOME`.
        progress: called with (bytes done, bytes in all, path).

    Returns:
        The counts.

    Raises:
        FormatError: the only file, or none of the files, is of a known format.
        SourceError: a file lies outside the source's root, or records are there with other options.
        UsageError: a path names nothing.
    """
    started = time.monotonic()
    check_kind(kind)
    if not source or not source.strip():
        raise UsageError("--source is empty; expected a name, such as support-bot. Pass one.")
    named = format_named(format, kind) if format else None
    lake = lake_paths(home)
    ledger = Ledger(lake, Facts(kind, source, license, options_json(options)))
    ledger.load()
    files = place_below_roots(find(paths, lake.home), root, ledger.roots, paths, source)
    reader = Reader(files, ledger, named, amend, progress)
    loader = Loader(ledger, amend)
    try:
        for event in read_ahead(reader.events()):
            if isinstance(event, Identified):
                loader.take(event)
            else:
                _check_recognised(event, files)
                loader.end(event)
        loader.commit()
    except BaseException:
        loader.abort()
        raise
    for state in ledger.tables.values():
        if state is not None and compact.small_files(state.files):
            compact.join_small_files(state.uri)
    return _summary(loader.results, time.monotonic() - started)


def _check_recognised(end: FileEnd, files: list[InputFile]) -> None:
    """Stop if a file that was named alone is not recognised; one of a folder is listed in the summary."""
    if end.state == "unrecognised" and len(files) == 1 and files[0].named:
        raise FormatError(f"{end.file.where} is of no known format: {end.detail}. Name one with --format.")


def _summary(results: list[FileResult], seconds: float) -> Summary:
    unrecognised = tuple((r.end.file.path, r.end.detail or "") for r in results if r.end.state == "unrecognised")
    if results and len(unrecognised) == len(results):
        path, detail = unrecognised[0]
        raise FormatError(
            f"none of {len(results)} files is of a known format, the first, {path}: {detail}. "
            "Look at them with `lake sql 'select path, detail from raw.landings'`, or name a format with --format."
        )
    counts = Counts.total(result.counts for result in results)
    return Summary(
        read=counts.read,
        landed=counts.landed,
        already=counts.already,
        rejected=counts.rejected,
        skipped=counts.skipped.total(),
        bytes=sum(result.end.bytes for result in results),
        seconds=round(seconds, 3),
        files=len(results),
        unrecognised=unrecognised,
    )
