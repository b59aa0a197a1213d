"""How far a landing is: a bar by bytes on a terminal, a plain line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY_SECONDS = 10.0


@contextmanager
def shown(quiet: bool = False) -> Iterator[Callable[[int, int, str], None] | None]:
    """Give a function that shows (bytes done, bytes in all, path) on stderr.

    Args:
        quiet: show nothing.
    """
    if quiet:
        yield None
    elif sys.stderr.isatty():
        yield from _bar()
    else:
        yield _lines()


def _bar() -> Iterator[Callable[[int, int, str], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(done: int, total: int, path: str) -> None:
            bar.update(task, completed=done, total=total or None, description=path[-40:])

        yield show


def _lines() -> Callable[[int, int, str], None]:
    last = time.monotonic()

    def show(done: int, total: int, path: str) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY_SECONDS:
            last = time.monotonic()
            share = f" of {total / 1e6:,.0f} MB ({done / total:.0%})" if total else " MB"
            print(f"{done / 1e6:,.0f}{share}, {path}", file=sys.stderr, flush=True)

    return show
