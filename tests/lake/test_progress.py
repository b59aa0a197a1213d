"""How far a long piece of work is, on a terminal and elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading

import pytest

import lake.progress
from lake.progress import progress

WORK = """
import sys, time
from lake.progress import progress
with progress("memo text_quality", 2000) as show:
    for done in (500, 1000):
        show(done)
        print("result", done, flush=True)
        time.sleep(0.3)
    with progress(unit="bytes") as inner:
        inner(3_000_000, 12_000_000, "x.jsonl")
        time.sleep(0.3)
    show(2000)
    time.sleep(0.3)
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


def test_on_a_terminal_a_bar_stands_on_stderr_and_stdout_holds_results_alone() -> None:
    terminal, stderr = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "160", "LINES": "40"}
    worker = subprocess.Popen(
        [sys.executable, "-c", WORK], stdout=subprocess.PIPE, stderr=stderr, env=environment, text=True
    )
    os.close(stderr)
    pieces: list[bytes] = []

    def read() -> None:
        try:
            while piece := os.read(terminal, 65536):
                pieces.append(piece)
        except OSError:  # Linux says so when the last writer is gone
            pass

    reader = threading.Thread(target=read)
    reader.start()
    out, _ = worker.communicate(timeout=60)
    reader.join(10)
    os.close(terminal)
    shown = b"".join(pieces).decode()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert worker.returncode == 0 and out == "result 500\nresult 1000\n"
    assert "━" in text and "\x1b[?25l" in shown and "\x1b[?25h" in shown  # the cursor is hidden, and shown again
    for expected in ("memo text_quality", "500 of 2,000 rows (25%)", "x.jsonl", "3 of 12 MB (25%)", "2,000 of 2,000"):
        assert expected in text
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
