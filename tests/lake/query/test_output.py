"""Tables as people read them."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from lake.query.output import draw_table

NAMES = ["name", "n"]
CELLS = [["a[bold]b[/]", "1"], ["語", "1234"], ["", "5"]]


def test_elsewhere_a_table_is_the_same_text_whatever_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in ("20", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        assert draw_table(NAMES, CELLS, [False, True], terminal=False) == (
            "name            n\n-----------  ----\na[bold]b[/]     1\n語            1234\n                5\n"
        )


def test_on_a_terminal_columns_are_even_by_width_and_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", "20")
    cells = [*CELLS, ["x" * 60, "7"]]
    lines = re.sub(r"\x1b\[[0-9;]*m", "", draw_table(NAMES, cells, [False, True], terminal=True)).splitlines()
    assert [line.split() for line in lines[2:]] == [*CELLS[:2], ["5"], cells[3]]
    assert len({cell_len(line.rstrip()) for line in lines[2:]}) == 1


WRITE = """
import pyarrow as pa
from lake.query.output import write
table = pa.table({"name": ["a", "bb"], "n": [1, 20]})
write(table.to_reader(), "table", None)
"""


def test_a_result_is_drawn_by_what_stdout_is() -> None:
    command = [sys.executable, "-c", WRITE]
    piped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert piped == "name   n\n----  --\na      1\nbb    20\n(2 rows)\n"
    terminal, stdout = pty.openpty()
    subprocess.run(command, stdout=stdout, check=True, env=os.environ | {"TERM": "xterm-256color"})
    os.close(stdout)
    text = os.read(terminal, 65536).decode()
    os.close(terminal)
    assert "━" in text or "─" in text
    assert [line.split() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()][2:] == [
        ["a", "1"], ["bb", "20"], ["(2", "rows)"],
    ]  # fmt: skip
