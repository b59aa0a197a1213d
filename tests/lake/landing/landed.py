"""What lies in a lake, read with DuckDB: the truth that the landing tests compare with."""

from __future__ import annotations

import multiprocessing
import threading
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import duckdb

from lake.landing import commits, containers, loader
from lake.landing.land import land
from lake.storage import table


def rows(home: Path | str, name: str, columns: str = "*", where: str = "true") -> list[tuple[Any, ...]]:
    """Read rows of a raw table, nothing where there is no table."""
    state = table.snapshot(f"{home}/raw/{name}")
    if state is None or not state.files:
        return []
    return duckdb.sql(f"select {columns} from read_parquet({list(state.files)}) where {where} order by all").fetchall()


def content(home: Path | str, kind: str) -> tuple[list[Any], list[Any]]:
    """Return what is in a lake whatever the order of arrival: records and rejects."""
    records = rows(home, kind, "record_id, source, format, previous_id, natural_key, payload, payload_hash, license")
    rejects = rows(home, "rejects", "reject_id, source, previous_id, reason, payload, payload_bytes")
    return records, rejects


def land_in_small_batches(
    home: str, kind: str, root: str, paths: list[str], gate: str | None, said: Connection,
    stop_after: tuple[int, Path] | None,
) -> None:  # fmt: skip
    """Land with batches so small that many commits meet; runs in a process of its own."""
    if stop_after:
        stop_for_good(f"{home}/raw/{kind}", *stop_after)
    loader.BATCH_BYTES, loader.LOOKUP_BYTES, containers.CHUNK = 12_000, 4_000, 3_000
    commits.REJECTS_BYTES = 12_000
    said.send("ready")
    while gate is not None and not Path(gate).exists():
        pass
    found = land(paths, kind, "s", root=root, home=home)
    said.send([found.read, found.landed, found.already, found.rejected, found.skipped])


def stop_for_good(uri: str, commits_left: int, sign: Path) -> None:
    """Have this process make a file and wait to be killed after its nth commit to a table."""
    commit = table.commit

    def counted(base: table.Snapshot, *args: Any, **keywords: Any) -> table.Snapshot:
        nonlocal commits_left
        after = commit(base, *args, **keywords)
        commits_left -= base.uri == uri and after.version > base.version
        if commits_left == 0:
            sign.touch()
            threading.Event().wait()
        return after

    table.commit = counted  # type: ignore[assignment]


def started(
    home: Path, kind: str, paths: list[Path], gate: Path | None, stop_after: tuple[int, Path] | None = None
) -> tuple[BaseProcess, Connection]:
    """Start a process that lands; it says "ready", and its counts when it is done.

    From a fork server that has the imports behind it (and has used none of them: delta-rs must not be used and then
    forked), so that a process is there in a tenth of a second.
    """
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["tests.lake.landing.landed"])
    here, there = server.Pipe(duplex=False)
    call = (
        str(home),
        kind,
        str(paths[0].parent),
        [str(p) for p in paths],
        str(gate) if gate else None,
        there,
        stop_after,
    )
    process = server.Process(target=land_in_small_batches, args=call)
    process.start()
    there.close()
    assert here.recv() == "ready"
    return process, here
