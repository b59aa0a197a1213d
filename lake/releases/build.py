"""`lake build`: dbt runs the whole way, the result is audited, and only then published.

dbt is a process of its own whose output is shown as it comes. Where nothing landed and nothing of the project changed
since the workspace was built and published, nothing is run.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lake.config import NO_TELEMETRY, LakePaths
from lake.errors import AuditError, ConflictError, NotFoundError, StaleBuildError
from lake.releases.audit import audit
from lake.releases.publish import Published, publish
from lake.releases.workspace import check_build, open_workspace
from lake.schema import IN_WHEEL
from lake.sql import identifier
from lake.storage.catalog import built_tables
from lake.storage.refs import Refs, Release
from lake.storage.table import snapshot

REBASES = 5
PR_SET_PDEATHSIG = 1  # prctl(2)


@dataclass(frozen=True)
class Built:
    """What a build did.

    Attributes:
        published: the release; None where none was wanted.
        tables: audited tables; 0 where nothing was run, since the last release holds what a build would give.
        checks: checks that were evaluated and passed.
        funnel: rows per kind and source: examples, kept, and dropped by stage.
        memos: per kernel, how many results were asked, computed and reused.
        seconds: by step: dbt, audit, publish.
    """

    published: Published | None
    tables: int
    checks: int
    funnel: list[dict[str, Any]]
    memos: list[dict[str, Any]]
    seconds: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return what `lake build --json` prints."""
        release = self.published.release if self.published else None
        return {
            "release": release.number if release else None,
            "parent": release.parent if release else None,
            "is_new": self.published.is_new if self.published else False,
            "tables": {n: {"rows": t.rows, "digest": t.digest} for n, t in release.tables.items()} if release else {},
            "written": dict(self.published.written) if self.published else {},
            "checks": self.checks,
            "funnel": self.funnel,
            "memos": self.memos,
            "seconds": self.seconds,
        }

    def as_text(self) -> str:
        """Return the closing summary."""
        lines = [f"{self.checks} checks on {self.tables} tables passed"] if self.tables else []
        lines += [f"memo {m['kernel']}: {m['computed']} computed, {m['reused']} reused" for m in self.memos]
        for row in self.funnel:
            drops = ", ".join(f"{n} {stage}" for stage, n in row["dropped"].items()) or "none"
            lines.append(
                f"{row['kind']}/{row['source']}: {row['examples']} examples, {row['kept']} kept, dropped: {drops}"
            )
        examples, kept = (sum(r[k] for r in self.funnel) for k in ("examples", "kept"))
        lines.append(f"in all: {examples} examples = {kept} kept + {examples - kept} dropped")
        lines.append(describe(self.published))
        took = ", ".join(f"{step} {s:.1f} s" for step, s in self.seconds.items())
        return "\n".join([*lines, f"took {took}"] if took else lines)


def build(
    paths: LakePaths,
    tag: str | None = None,
    publishes: bool = True,
    rebase: bool = False,
    allow_empty: Sequence[str] = (),
    say: Callable[[str], object] = lambda line: None,
    quiet: bool = False,
    full_refresh: bool = False,
) -> Built:
    """Build, audit and publish.

    Args:
        paths: of the lake, the workspace and the project.
        tag: a name for the release.
        publishes: False stops after the audit.
        rebase: when somebody publishes meanwhile, pin and build anew on their release, a few times at most.
        allow_empty: tables that may lose all their rows.
        say: takes lines of progress.
        quiet: send dbt's output to stderr, so that stdout holds the caller's alone.
        full_refresh: make every row anew, instead of taking over those of the last release that cannot have changed.

    Returns:
        What was done.

    Raises:
        AuditError: dbt or a check failed; nothing was published.
        ConflictError: somebody published meanwhile, and rebase is off.
        UsageError: the tag is not allowed or names an older release.
    """
    if tag is not None:  # what can be known before a long build
        refs = Refs(paths.home)
        last = refs.last()
        refs.check_free(tag, last.number if last else 0)
    if publishes and not full_refresh and (held := _held(paths)) is not None:
        if tag is not None:
            Refs(paths.home).add_tag(tag, held.number)
        say(f"nothing landed and nothing of the project changed since release {held.number} was built here")
        funnel, memos = summary(paths)
        reused = [memo | {"asked": 0, "computed": 0, "reused": 0} for memo in memos]
        return Built(Published(held, False, {}), 0, 0, funnel, reused)
    for attempt in range(REBASES if rebase else 1):
        started = time.monotonic()
        run_dbt(paths, quiet, full_refresh)
        built = time.monotonic()
        audited = audit(paths, allow_empty, say)
        checked = time.monotonic()
        try:
            published = publish(paths, tag, False, allow_empty, audited.invocation) if publishes else None
        except ConflictError:
            if attempt + 1 == (REBASES if rebase else 1):
                raise
            say("somebody published meanwhile; building again on their release")
            continue
        seconds = {"dbt": built - started, "audit": checked - built, "publish": time.monotonic() - checked}
        rounded = {step: round(s, 2) for step, s in seconds.items()}
        return Built(published, audited.tables, audited.checks, *summary(paths), seconds=rounded)
    raise AssertionError("the loop returns or raises")


def _held(paths: LakePaths) -> Release | None:
    """Return the last release, if a build would begin from what this workspace was built and published from."""
    refs = Refs(paths.home)
    last = refs.last()
    if last is None:
        return None
    try:
        with open_workspace(paths.workspace) as connection:
            build = check_build(connection, paths)
    except (NotFoundError, StaleBuildError):
        return None
    notes = [(note.raw_pins, note.project_digest) for note in refs.lineages(last.number)]
    if (build.raw_pins, build.project_digest) not in notes:
        return None
    newest = {name: snapshot(paths.table("raw", name)) for name in build.raw_pins}
    return last if build.raw_pins == {name: s.version if s else None for name, s in newest.items()} else None


def run_dbt(paths: LakePaths, quiet: bool = False, full_refresh: bool = False) -> None:
    """Run `dbt build` over the whole project, in a process of its own.

    Args:
        paths: of the lake, the workspace and the project.
        quiet: send dbt's output to stderr.
        full_refresh: make every row anew.

    Raises:
        AuditError: dbt failed; it has said why.
    """
    places = {"LAKE_HOME": paths.home, "LAKE_WORKSPACE": str(paths.workspace)}
    # Not `-m dbt.cli.main`: its package imports the module first, and Python warns of that at every run.
    command = [sys.executable, "-c", "from dbt.cli.main import cli; cli()", "build"]
    # Explicit, so that a build from a folder below the project, or of the packaged files, is the same build.
    command += ["--project-dir", str(paths.project)]
    command += ["--profiles-dir", str(paths.project / "lake")]
    command += ["--full-refresh"] if full_refresh else []
    if paths.project == IN_WHEEL:  # nobody's project: dbt must not write into the installed package
        scratch = paths.workspace.parent
        command += ["--target-path", str(scratch / "target"), "--log-path", str(scratch / "logs")]
    finished = subprocess.run(
        command,
        env=os.environ | NO_TELEMETRY | places,
        stdout=sys.stderr if quiet else None,
        check=False,
        preexec_fn=_end_with_parent if sys.platform == "linux" else None,
    )
    if finished.returncode:
        raise AuditError(
            f"dbt ended with status {finished.returncode}; its messages above say which model or test. Nothing was "
            "published. Mend it and run `lake build` again; what kernels computed is kept."
        )


def summary(paths: LakePaths) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the funnel's totals and the kernels' accounts of the workspace."""
    query = (
        "select kind, source, count(*) as examples, count(*) filter (where kept) as kept, "
        "list(stage order by stage) filter (where not kept) as stages from decisions group by all order by all"
    )
    with open_workspace(paths.workspace) as connection:
        decided = connection.execute(query).fetchall()
        memos = [table for table in built_tables(connection) if table.startswith("memo_")]
        accounts = [
            row
            for table in memos
            for row in connection.execute(f"select kernel, asked, computed, reused from {identifier(table)}").fetchall()
        ]
    funnel = [
        {"kind": kind, "source": source, "examples": examples, "kept": kept, "dropped": _counted(stages or [])}
        for kind, source, examples, kept, stages in decided
    ]
    return funnel, [dict(zip(("kernel", "asked", "computed", "reused"), a, strict=True)) for a in accounts]


def describe(published: Published | None) -> str:
    """Say in a line what a publish did."""
    if published is None:
        return "not published (--no-publish)"
    release = published.release
    rows = sum(published.written.values())
    if not published.is_new:
        return f"release {release.number} holds this content already; no new release was made"
    return f"release {release.number} is published ({rows} rows written, parent {release.parent or 'none'})"


def _end_with_parent() -> None:
    """Ask the kernel to kill dbt when `lake build` is killed: it would hold the workspace, and the next build stop."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _counted(stages: Sequence[str]) -> dict[str, int]:
    return {stage: stages.count(stage) for stage in dict.fromkeys(stages)}
