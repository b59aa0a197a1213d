"""Kernels' results so far: every input is computed once, by whoever asks first, and never again.

One Delta table per kernel and fingerprint, `memo/<kernel>/<fingerprint>`: a result never changes there, a new version
of a kernel starts a table of its own, and deleting a memo changes cost and nothing else. Results are committed as they
come, so a build that is killed goes on where it was. Two builds that compute one key at a time store it once: whoever
commits second drops what the first has committed.
"""

from __future__ import annotations

import functools
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InternalError
from lake.kernels.fingerprint import fingerprint
from lake.progress import Show, progress
from lake.sql import identifier, literal
from lake.storage.catalog import read_base
from lake.storage.parquet import delete_files
from lake.storage.table import CommitConflict, Snapshot, commit, create, identity, retry_on_conflict, snapshot, write
from lake.storage.views import create_view, relation, scan
from transforms.kernel import Kernel

__all__ = ["extend", "fingerprint", "newest", "stored", "table_id"]

Run = Callable[[pa.RecordBatch], pa.RecordBatch]

FEW = 100_000  # inputs up to this are held at one time: what asks for them may cost more than they weigh
LARGE = 1 << 20  # inputs above this travel in small batches: a batch's column must stay below 2 GiB
PIECE_BYTES = 4 << 20  # of input per task, so that threads share the work
COMMIT_BYTES = 128 << 20
COMMIT_SECONDS = 20.0  # what a kill may cost


def extend(
    session: duckdb.DuckDBPyConnection,
    kernel: Kernel,
    asked: duckdb.DuckDBPyRelation | str,
    context: duckdb.DuckDBPyRelation | None = None,
    scope: str | None = None,
) -> duckdb.DuckDBPyRelation:
    """Compute what a memo lacks, store it, and point the view `memo.<kernel>` at it.

    Args:
        session: the build's connection; its lake is in `_lake.base`.
        kernel: what to compute.
        asked: relation, or its SQL: `key`, the kernel's inputs, and, if there are more columns, names for error
            messages, such as an example's id. Equal keys have equal inputs; they are computed once.
        context: what the kernel's `prepare` takes, for kernels that have one; read only if a result is missing.
        scope: `_changed` asks for those raw records alone that are new or amended since the last release, which was
            built from the results for all others.

    Returns:
        One row of accounts: kernel, fingerprint, asked, computed, reused (numbers of different keys).

    Raises:
        InternalError: the kernel failed; the message names the row and the error. What was computed before is stored.
            Or its code has no fingerprint, or a context was given to a kernel without `prepare`, or none to one with.
    """
    if (context is None) != (kernel.prepare is None):
        raise InternalError(
            f"kernel {kernel.name} has {'no ' if kernel.prepare is None else ''}prepare and was given "
            f"{'no' if context is None else 'a'} context; expected both or none. Mend models/**/memo_{kernel.name}.py."
        )
    wanted = asked if isinstance(asked, str) else asked.sql_query()
    lake = read_base(session)
    assert lake is not None, "the dbt plugin notes the lake when it opens the workspace"
    base = create(_uri(lake[0], kernel), stored(kernel))
    with _restricted(session, scope):
        question = _find_missing(session, kernel, wanted, base)
        if question.missing:
            prepared = () if kernel.prepare is None or context is None else (kernel.prepare(context.to_arrow_table()),)
            run = functools.partial(_checked, kernel, prepared)
            results = _compute(kernel, run, _inputs(session, kernel, question))
            with progress(f"memo {kernel.name}", question.missing) as show:
                base = _store(base, kernel, results, show)
    total, missing = question.total, question.missing
    session.execute("drop table memo_missing")
    session.execute("drop table if exists memo_asked")
    session.execute(create_view(identifier("memo", kernel.name), stored(kernel), base))
    return session.sql(
        f"select {literal(kernel.name)} as kernel, {literal(fingerprint(kernel))} as fingerprint, "
        f"{total}::bigint as asked, {missing}::bigint as computed, {total - missing}::bigint as reused"
    )


def stored(kernel: Kernel) -> pa.Schema:
    """Return the schema of a kernel's memo."""
    text = [pa.field("key", pa.string(), nullable=False), pa.field("fingerprint", pa.string(), nullable=False)]
    return pa.schema([*text, *kernel.results])


def newest(home: str, kernel: Kernel) -> Snapshot | None:
    """Return the memo of a kernel as it is now, None where nothing was computed.

    Args:
        home: absolute path or URL of the lake.
        kernel: whose; its fingerprint names the table.
    """
    return snapshot(_uri(home, kernel))


def table_id(home: str, kernel: Kernel) -> str | None:
    """Return Delta's id of a kernel's memo, which a memo that was deleted and made anew does not share.

    Args:
        home: absolute path or URL of the lake.
        kernel: whose.

    Returns:
        The id, or None where nothing was computed.
    """
    return identity(_uri(home, kernel))


def _uri(home: str, kernel: Kernel) -> str:
    return f"{home.rstrip('/')}/memo/{kernel.name}/{fingerprint(kernel)}"


@dataclass(frozen=True)
class _Question:
    """What is asked of a memo.

    Attributes:
        asked: SQL of it, or of what is missing of it alone.
        total: number of different keys.
        missing: number of those without a result.
        is_unique: no key is asked for twice.
    """

    asked: str
    total: int
    missing: int
    is_unique: bool


@contextmanager
def _restricted(session: duckdb.DuckDBPyConnection, scope: str | None) -> Iterator[None]:
    """Let staging see the records of a scope alone; dbt goes on with the connection, also after an error."""
    if scope is not None:
        session.execute(f"set variable lake_scope = {literal(scope)}")
    try:
        yield
    finally:
        session.execute("reset variable lake_scope")


def _find_missing(session: duckdb.DuckDBPyConnection, kernel: Kernel, asked: str, base: Snapshot) -> _Question:
    """List the keys asked for in the temporary table memo_missing.

    Inputs are measured, and so read, where a result is missing only: a build without news reads no payload.
    """
    known = relation(stored(kernel), base)
    session.execute(
        f"create or replace temp table memo_missing as with asked as ({asked}) "
        "select key, false as is_large, count(*) as times, false as is_missing from asked group by key"
    )
    # What is asked is looked for among what is known, and not the other way round: `not in` would hash all of it.
    session.execute(
        "update memo_missing set is_missing = true where key not in "
        f"(select key from ({known}) where key in (select key from memo_missing))"
    )
    ((total, missing, is_unique),) = session.execute(
        "select count(*), count(*) filter (where is_missing), coalesce(max(times), 1) = 1 from memo_missing"
    ).fetchall()
    if 0 < missing <= FEW:
        session.execute(
            f"create or replace temp table memo_asked as select * from ({asked}) "
            "where key in (select key from memo_missing where is_missing)"
        )
        asked = "select * from memo_asked"
    if missing:
        sizes = " + ".join(f"coalesce({_bytes(f)}, 0)" for f in kernel.inputs) or "0"
        session.execute(
            f"update memo_missing set is_large = true where key in (with asked as ({asked}) select key from asked "
            f"where key in (select key from memo_missing where is_missing) group by key having max({sizes}) > {LARGE})"
        )
    return _Question(asked, total, missing, is_unique)


def _bytes(field: pa.Field) -> str:
    if pa.types.is_binary(field.type):
        return f"octet_length({identifier(field.name)})"
    return f"strlen(cast({identifier(field.name)} as varchar))"


def _inputs(session: duckdb.DuckDBPyConnection, kernel: Kernel, question: _Question) -> Iterator[pa.RecordBatch]:
    """Read what is missing, one row a key, in pieces of bounded size."""
    asked = question.asked
    # Grouping would hold every input in memory at one time.
    first, least, grouped = ("", "", "") if question.is_unique else ("any_value", "min", " group by key")
    inputs = ", ".join(f"{first}({n}) as {n}" for n in map(identifier, kernel.inputs.names))
    others = [c for c in session.sql(asked).columns if c not in ("key", *kernel.inputs.names)]
    names = "".join(f", {least}({c}) as {c}" for c in map(identifier, others))
    for is_large, rows in ((False, 1024), (True, 8)):
        rows_of_size = session.sql(
            f"with asked as ({asked}) select key, {inputs}{names} from asked where key in "
            f"(select key from memo_missing where is_missing and is_large = {is_large}){grouped}"
        )
        with rows_of_size.to_arrow_reader(rows) as reader:
            for batch in reader:
                step = max(1, batch.num_rows * PIECE_BYTES // max(batch.nbytes, 1))
                for start in range(0, batch.num_rows, step):
                    yield batch.slice(start, step)


def _compute(kernel: Kernel, run: Run, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    """Run a kernel over batches on threads, in order; yields the keys and the results."""
    workers = os.cpu_count() or 1
    waiting: deque[tuple[pa.RecordBatch, Future[pa.RecordBatch]]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for batch in batches:
            waiting.append((batch, pool.submit(run, batch)))
            if len(waiting) > 2 * workers:
                yield _result(kernel, run, *waiting.popleft())
        while waiting:
            yield _result(kernel, run, *waiting.popleft())


def _result(
    kernel: Kernel, run: Run, batch: pa.RecordBatch, future: Future[pa.RecordBatch]
) -> tuple[pa.Array, pa.RecordBatch]:
    try:
        result = future.result()
    except Exception as error:
        raise InternalError(_describe(kernel, run, batch, error)) from error
    return batch.column("key"), result


def _checked(kernel: Kernel, prepared: tuple[Any, ...], batch: pa.RecordBatch) -> pa.RecordBatch:
    result = kernel.compute(batch.select(kernel.inputs.names).cast(kernel.inputs), *prepared)
    if result.num_rows != batch.num_rows or not result.schema.equals(kernel.results, check_metadata=False):
        raise InternalError(
            f"returned {result.num_rows} rows of {result.schema} for {batch.num_rows} rows; "
            f"expected as many of {kernel.results}"
        )
    return result


def _describe(kernel: Kernel, run: Run, batch: pa.RecordBatch, error: Exception) -> str:
    """Say which row a kernel fails on, found by halving the batch."""
    while batch.num_rows > 1:
        half = batch.num_rows // 2
        first, second = batch.slice(0, half), batch.slice(half)
        batch = first if _fails(run, first) else second
    problem = _fails(run, batch)
    if problem is None:
        return f"kernel {kernel.name} failed on a batch and on none of its rows: {error!r}. Mend transforms/."
    names = {c: batch.column(c)[0].as_py() for c in batch.schema.names if c not in kernel.inputs.names}
    where = ", ".join(f"{c} {v}" for c, v in names.items())
    return (
        f"kernel {kernel.name} failed on {where}: {problem!r}. Mend {kernel.compute.__module__}, "
        "which must give a result for every input; what was computed before is stored."
    )


def _fails(run: Run, batch: pa.RecordBatch) -> Exception | None:
    try:
        run(batch)
    except Exception as error:
        return error
    return None


def _store(base: Snapshot, kernel: Kernel, results: Iterator[tuple[pa.Array, pa.RecordBatch]], show: Show) -> Snapshot:
    """Commit results as they come, every COMMIT_BYTES or COMMIT_SECONDS, and also before an error goes on."""
    schema, mark = stored(kernel), fingerprint(kernel)
    pending: list[pa.RecordBatch] = []
    computed = 0
    since = time.monotonic()
    try:
        for keys, result in results:
            marks = pa.repeat(pa.scalar(mark), len(keys))
            pending.append(pa.RecordBatch.from_arrays([keys, marks, *result.columns], schema=schema))
            computed += len(keys)
            show(computed)
            if sum(b.nbytes for b in pending) > COMMIT_BYTES or time.monotonic() - since > COMMIT_SECONDS:
                batches, pending = pending, []
                base = _append(base, schema, batches)
                since = time.monotonic()
    finally:
        base = _append(base, schema, pending)
    return base


def _append(base: Snapshot, schema: pa.Schema, batches: list[pa.RecordBatch]) -> Snapshot:
    """Commit results on `base`, but those of keys that somebody else has committed since."""
    head, missing = base, batches

    def attempt() -> Snapshot:
        nonlocal head, missing
        newest = create(base.uri, schema)
        if newest.version != head.version:
            known = _keys(sorted({*newest.files} - {*head.files}))
            missing = [b.filter(pc.invert(pc.is_in(b.column("key"), value_set=known))) for b in missing]
            head = newest
        new = write(base.uri, schema, missing)
        try:
            return commit(head, new)
        except CommitConflict:
            delete_files(new)  # the next try may leave rows out
            raise

    return retry_on_conflict(base.uri, attempt)


def _keys(files: list[str]) -> pa.Array:
    if not files:
        return pa.array([], pa.string())
    with duckdb.connect() as scratch:
        keys = scratch.sql(f"select key from {scan(files)}").to_arrow_table()
    return keys.column("key").combine_chunks()
