"""How far a long piece of work is, on a terminal and elsewhere."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys

import pytest

import lake.progress
from lake.progress import progress

# Goes on each time that it is told to, which is when the bar that it has called for is on the terminal.
WORK = """
import sys
from lake.progress import progress
with progress("memo text_quality", 2000) as show:
    for done in (500, 1000):
        show(done)
        print("result", done, flush=True)
        sys.stdin.readline()
    with progress(unit="bytes") as inner:
        inner(3_000_000, 12_000_000, "x.jsonl")
        sys.stdin.readline()
    show(2000)
    sys.stdin.readline()
print("end", file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("unit", "calls", "line"),
    [
        ("rows", [(500,)], "500 of 2,000 rows (25%), memo text_quality, "),
        ("bytes", [(3_000_000, 12_000_000, "x.jsonl")], "3 of 12 MB (25%), x.jsonl, "),
        ("bytes", [(1_000_000, 12_000_000, "a"), (9_000_000,)], "9 of 12 MB (75%), a, "),
    ],
)
def test_elsewhere_a_line_says_amount_share_what_and_rate(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    unit: str,
    calls: list[tuple[int, int, str]],
    line: str,
) -> None:
    monkeypatch.setattr(lake.progress, "EVERY_SECONDS", 0.0)
    with progress("memo text_quality", 2000, unit) as show:
        for call in calls:
            show(*call)
    out, err = capfd.readouterr()
    last = err.splitlines()[-1]
    assert out == "" and last.startswith(line)
    assert re.fullmatch(r"[\d,.]+ (MB|rows)/s", last.removeprefix(line))


def test_elsewhere_no_line_comes_before_ten_seconds_and_an_unknown_total_has_no_share(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with progress("reading") as show:
        for seconds, done in ((9.9, 10), (10.0, 20), (15.0, 30), (20.0, 40)):
            now = 100.0 + seconds
            show(done)
    assert capfd.readouterr().err.splitlines() == ["20 rows, reading, 2.0 rows/s", "40 rows, reading, 2.0 rows/s"]


def test_the_rate_counts_only_what_was_done_now(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with progress("training", 1000, "steps", start=900) as show:
        now = 110.0
        show(920)
    assert capfd.readouterr().err == "920 of 1,000 steps (92%), training, 2.0 steps/s\n"


def test_quiet_shows_nothing(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake.progress, "EVERY_SECONDS", 0.0)
    with progress("reading", quiet=True) as show:
        show(1, 2, "x")
    assert capfd.readouterr() == ("", "")


class Terminal:
    """A pseudo-terminal, and all that was written to it."""

    def __init__(self) -> None:
        self.descriptor, self.stderr = pty.openpty()
        self.written = b""

    def text(self) -> str:
        """Return what was written without its control sequences."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.written.decode(errors="ignore"))

    def read_until(self, expected: str | None) -> None:
        """Read until a text is there; None reads until the last writer is gone."""
        while expected is None or expected not in self.text():
            ready, _, _ = select.select([self.descriptor], [], [], 60)
            assert ready, f"{expected!r} does not come after {self.text()!r}"
            try:
                piece = os.read(self.descriptor, 65536)
            except OSError:  # Linux says so when the last writer is gone
                piece = b""
            if not piece:
                assert expected is None, f"{expected!r} is not in {self.text()!r}"
                return
            self.written += piece


def test_on_a_terminal_a_bar_stands_on_stderr_and_stdout_holds_results_alone() -> None:
    terminal = Terminal()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "160", "LINES": "40"}
    worker = subprocess.Popen(
        [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=terminal.stderr,
        env=environment, text=True,
    )  # fmt: skip
    os.close(terminal.stderr)
    assert worker.stdin is not None and worker.stdout is not None
    try:
        for expected in ("500 of 2,000 rows (25%)", "1,000 of 2,000 rows (50%)", "3 of 12 MB (25%)", "2,000 of 2,000"):
            terminal.read_until(expected)
            worker.stdin.write("\n")
            worker.stdin.flush()
        terminal.read_until(None)
        out, _ = worker.communicate(timeout=60)
    finally:
        worker.kill()
        os.close(terminal.descriptor)
    shown, text = terminal.written.decode(), terminal.text()
    assert worker.returncode == 0 and out == "result 500\nresult 1000\n"
    assert "━" in text and "\x1b[?25l" in shown and "\x1b[?25h" in shown  # the cursor is hidden, and shown again
    assert "memo text_quality" in text and "x.jsonl" in text
    # One bar at a time: a line that holds both would mean that a second display had written over the first.
    assert not [line for line in re.split(r"[\r\n]+", text) if "text_quality" in line and "x.jsonl" in line]
    assert text.rstrip().splitlines()[-1].strip() == "end"


def test_a_bar_that_cannot_be_added_leaves_no_display_running(monkeypatch: pytest.MonkeyPatch) -> None:
    display = lake.progress._display()
    monkeypatch.setattr(lake.progress, "_display", lambda: display)
    monkeypatch.setattr(display, "add_task", lambda *_, **__: 1 / 0)
    bars = lake.progress._Bars()
    with pytest.raises(ZeroDivisionError), bars.bar(lake.progress._Work("memo", 10, "rows", 0)):
        pass
    assert not display.live.is_started and bars.display is None
