"""Rows on their way out of `lake sql`: as a table on the terminal, as JSON, CSV or Parquet, in batches.

Written by us and not by DuckDB, whose connection may write nothing.

A table on a terminal is drawn by rich, which knows how wide a character is there. Elsewhere it is drawn here: rich
counts in cells of a terminal and fills every line up with spaces, and text that is kept or compared needs neither.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa

from lake.errors import UsageError
from lake.json_values import json_value, usual_number

if TYPE_CHECKING:
    from lake.query.query import Lake

SHOWN_ROWS = 40
SHOWN_TEXT = 60
FORMATS = ("table", "json", "csv", "parquet")


def write(reader: pa.RecordBatchReader, form: str, out: Path | None) -> None:
    """Write a result.

    Args:
        reader: its batches.
        form: table, json (one array), csv or parquet.
        out: a file; None for stdout.

    Raises:
        UsageError: Parquet on a terminal, or a file that cannot be written.
    """
    if out and not out.parent.is_dir():
        raise UsageError(f"{out.parent} is no folder; expected one for --out {out}. Make it, or name another.")
    if form == "parquet":
        _write_parquet(reader, out)
        return
    with _opened(out) as stream:
        {"table": _write_table, "json": _write_json, "csv": _write_csv}[form](reader, stream)


def plain(value: Any) -> Any:
    """Return a value as JSON has it, numbers as numbers where their digits allow it and NaN as null."""
    return json_value(value, usual_number)


def _rows(batch: pa.RecordBatch) -> Iterator[list[Any]]:
    """Yield a batch's rows; maps as lists of pairs."""
    yield from (list(row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _write_json(reader: pa.RecordBatchReader, stream: TextIO) -> None:
    names = _distinct(reader.schema.names)
    before = "["
    for batch in reader:
        for row in _rows(batch):
            stream.write(before)
            json.dump(dict(zip(names, map(plain, row), strict=True)), stream, ensure_ascii=False)
            before = ",\n"
    stream.write("]\n" if before != "[" else "[]\n")


def _write_csv(reader: pa.RecordBatchReader, stream: TextIO) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(reader.schema.names)
    for batch in reader:
        writer.writerows([_cell(plain(v)) for v in row] for row in _rows(batch))


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value


def _write_table(reader: pa.RecordBatchReader, stream: TextIO) -> None:
    """Draw the first rows in columns, and say how many there are."""
    names, count = reader.schema.names, 0
    shown: list[list[str]] = []
    for batch in reader:
        if len(shown) < SHOWN_ROWS:
            shown += [[_short(v) for v in row] for row in _rows(batch.slice(0, SHOWN_ROWS - len(shown)))]
        count += batch.num_rows
    numeric = [pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t) for t in reader.schema.types]
    stream.write(draw_table(names, shown, numeric, stream.isatty()))
    more = f", the first {len(shown)} shown; all with --format json, csv or parquet" if count > len(shown) else ""
    stream.write(f"({count} {'row' if count == 1 else 'rows'}{more})\n")


def draw_table(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], terminal: bool) -> str:
    """Return rows in columns, as text that ends a line.

    Args:
        names: of the columns.
        rows: their cells, each of one line.
        right: whether a column's cells stand at its right edge, as numbers do.
        terminal: draw it for a terminal.
    """
    if terminal:
        return _draw_for_terminal(names, rows, right)
    widths = [max([len(n), *(len(row[i]) for row in rows)]) for i, n in enumerate(names)]
    align: list[Callable[[str, int], str]] = [str.rjust if is_right else str.ljust for is_right in right]
    lines = []
    for line in [names, ["-" * w for w in widths], *rows]:
        cells = [put(cell, width) for put, cell, width in zip(align, line, widths, strict=True)]
        lines.append("  ".join(cells).rstrip() + "\n")
    return "".join(lines)


def _draw_for_terminal(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, is_right in zip(names, right, strict=True):
        table.add_column(Text(name), justify="right" if is_right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))  # as Text, since rich would take `[...]` in a str for markup
    # As wide as its cells: rich would cut columns to fit the terminal, which breaks long lines by itself.
    width = sum(max([cell_len(line[i]) for line in [names, *rows]]) + 4 for i in range(len(names)))
    text = io.StringIO()
    Console(file=text, force_terminal=True, width=max(width, 1)).print(table)
    return text.getvalue()


def _short(value: Any) -> str:
    """Return a cell of the table: one line, not too long."""
    value = plain(value)
    text = "" if value is None else _cell(value) if not isinstance(value, str) else value
    line = " ".join(str(text).split()) if isinstance(value, str) else str(text)
    return line if len(line) <= SHOWN_TEXT else line[: SHOWN_TEXT - 1] + "…"


def _write_parquet(reader: pa.RecordBatchReader, out: Path | None) -> None:
    import pyarrow.parquet as pq

    if out is None and sys.stdout.isatty():
        raise UsageError("Parquet is bytes and would garble the terminal. Pass --out FILE.")
    sink: Any = str(out) if out else pa.PythonFile(sys.stdout.buffer, mode="w")
    with pq.ParquetWriter(sink, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)


def _distinct(names: list[str]) -> list[str]:
    """Return names that are all different, as keys of an object must be: a, a_1, ..."""
    given: list[str] = []
    for name in names:
        n, candidate = 0, name
        while candidate in given:
            n += 1
            candidate = f"{name}_{n}"
        given.append(candidate)
    return given


@contextmanager
def _opened(out: Path | None) -> Iterator[TextIO]:
    if out:
        with out.open("w", encoding="utf-8", newline="") as stream:
            yield stream
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
        yield sys.stdout
    else:
        yield sys.stdout


def releases_as_json(lake: Lake) -> list[dict[str, Any]]:
    """Return the releases as plain objects, the newest first, with their tags."""
    tags = lake.refs.tags()
    return [
        release.as_json() | {"tags": sorted(t for t, number in tags.items() if number == release.number)}
        for release in reversed(lake.releases())
    ]


def releases_as_text(lake: Lake) -> str:
    """Return the releases as lines, the newest first."""
    releases = releases_as_json(lake)
    if not releases:
        return "no release yet; `lake build` makes one"
    lines = []
    for release in releases:
        tags = f" [{', '.join(release['tags'])}]" if release["tags"] else ""
        filled = [(name, table["rows"]) for name, table in sorted(release["tables"].items()) if table["rows"]]
        rows = ", ".join(f"{name} {count:,}" for name, count in filled)
        commit = f", commit {release['git_commit'][:10]}" if release["git_commit"] else ""
        parent = f"parent {release['parent'] or 'none'}"
        lines.append(f"{release['number']}{tags}: {release['created_at']}, {parent}{commit}: {rows}")
    return "\n".join(lines)
