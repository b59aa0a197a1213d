"""How far a long piece of work is, on stderr: a bar on a terminal, a plain line every ten seconds elsewhere.

    with progress("memo text_quality", total=5000) as show:
        show(120)

stdout is for results, so nothing here writes there.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

EVERY_SECONDS = 10.0


class Show(Protocol):
    """Takes how much is done, and, where they changed, how much there is in all and what is being worked on."""

    def __call__(self, done: int, total: int | None = None, what: str | None = None, /) -> None:
        """Show it."""


@dataclass
class _Work:
    """A piece of work: all that its bar or line says."""

    what: str
    total: int | None
    unit: str
    start: int
    began: float = field(default_factory=lambda: time.monotonic())
    done: int = 0

    def update(self, done: int, total: int | None, what: str | None) -> None:
        self.done, self.total, self.what = done, total or self.total, self.what if what is None else what

    def amount(self) -> str:
        """Return such as `12 of 340 MB (4%)`."""
        scale, unit = (1e6, "MB") if self.unit == "bytes" else (1, self.unit)
        if not self.total:
            return f"{self.done / scale:,.0f} {unit}"
        return f"{self.done / scale:,.0f} of {self.total / scale:,.0f} {unit} ({self.done / self.total:.0%})"

    def rate(self) -> str:
        """Return the mean since the start, such as `5.0 MB/s`."""
        scale, unit = (1e6, "MB") if self.unit == "bytes" else (1, self.unit)
        rate = (self.done - self.start) / scale / max(time.monotonic() - self.began, 1e-3)
        return f"{rate:,.{0 if rate >= 100 else 1}f} {unit}/s"


@contextmanager
def progress(
    what: str = "", total: int | None = None, unit: str = "rows", start: int = 0, quiet: bool = False
) -> Iterator[Show]:
    """Show how far the block is.

    Args:
        what: is being worked on.
        total: amount in all; None or 0 where it is not known.
        unit: `bytes`, shown as MB, or any other word, such as `rows`.
        start: amount that was done before; it does not count for the rate.
        quiet: show nothing.

    Yields:
        A function that takes the amount done so far.
    """
    work = _Work(what, total, unit, start)
    if quiet:
        yield lambda *_: None
    elif sys.stderr.isatty():
        with _BARS.bar(work) as show:
            yield show
    else:
        yield _lines(work)


def _lines(work: _Work) -> Show:
    last = work.began

    def show(done: int, total: int | None = None, what: str | None = None, /) -> None:
        nonlocal last
        work.update(done, total, what)
        if time.monotonic() - last >= EVERY_SECONDS:
            last = time.monotonic()
            print(", ".join(filter(None, (work.amount(), work.what, work.rate()))), file=sys.stderr, flush=True)

    return show


class _Bars:
    """The bars of this process: dbt computes several memos at a time, and two displays would write over each other.

    Only the newest bar is visible. To redraw a display of several lines, rich erases the lines above the cursor, which
    may by then be lines of dbt's on stdout.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.display: Any = None

    @contextmanager
    def bar(self, work: _Work) -> Iterator[Show]:
        """Show the bar of a piece of work."""
        with self.lock:
            display = self.display or _display()
            bar = display.add_task(work.what, total=work.total or None, completed=work.start, amount="", rate="")
            for task in display.tasks[:-1]:
                display.update(task.id, visible=False)
            if self.display is None:
                # Last, so that whatever fails before leaves no display running: nobody would stop it.
                display.start()
                self.display = display

        def show(done: int, total: int | None = None, what: str | None = None, /) -> None:
            work.update(done, total, what)
            described: dict[str, Any] = {"description": work.what[-40:], "amount": work.amount(), "rate": work.rate()}
            display.update(bar, completed=done, total=work.total or None, **described)

        try:
            yield show
        finally:
            with self.lock:
                display.remove_task(bar)
                if display.tasks:
                    display.update(display.tasks[-1].id, visible=True)
                else:
                    display.stop()
                    self.display = None


_BARS = _Bars()


def _display() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    text = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[amount]}"))
    # By default rich turns what is printed on stdout meanwhile to its own console, which is stderr.
    return Progress(
        *text, TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True, redirect_stdout=False,
    )  # fmt: skip
