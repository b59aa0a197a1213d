"""Any history of a lake: after its steps the release holds what a build of everything holds.

Steps are landings of every kind, logs that grow, amendments, edits to the project, lost memos, joined files, builds
that are killed, and other workspaces. Independent truth is `dbt build --full-refresh` in a workspace of its own, and a
digest worked out from the release's files by hand.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from lake.config import LakePaths
from lake.init import init
from lake.landing.land import land
from lake.releases.build import build
from lake.storage import compact
from lake.storage.refs import Refs
from tests import dbt_process
from tests.effort import PROFILE, examples

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.hypothesis, pytest.mark.timeout(7200)]

# A comparison takes two builds, so by default there is one for three steps; a step alone is easier to understand.
STEPS, STEPS_A_COMPARISON = {"default": (15, 3), "attack": (10, 1)}[PROFILE]
QUESTIONS = [
    f"How many {animal} does a farmer with nine barns and six dogs keep in winter?" for animal in ("hens", "cows")
]
WORDS = ["bread", "dough", "oven", "salt", *QUESTIONS]
LICENCES = st.sampled_from(["MIT", "CC-BY-NC-4.0", "Proprietary-1.0"])
EDITS: dict[str, tuple[str, str, str]] = {
    "comment": ("models/curated/dropped_by_rule.sql", "-- Benchmarks are judged", "-- Truly, benchmarks are judged"),
    "rule": (
        "models/curated/dropped_by_rule.sql",
        "when facts.is_empty",
        "when facts.is_empty or facts.license = 'MIT'",
    ),
    "facts": ("models/curated/example_facts.sql", "shape = 'chat' and answers_user", "shape = 'chat' and has_answer"),
    "macro": ("transforms/macros/equality.sql", "' ', 'g'), ' ')", "'', 'g'), ' ')"),
    "staging": ("models/staging/web/stg_web__documents.sql", "    problem\nfrom", "    'undecodable' as problem\nfrom"),
    "threshold": ("contracts/reference/thresholds.csv", "common_texts,10", "common_texts,1"),
    "licences": ("contracts/reference/licences.csv", "CC-BY-NC-4.0,false", "CC-BY-NC-4.0,true"),
    "contract": ("contracts/train/train_sft.yaml", "version: 1.0.0", "version: 1.0.1"),
    "train": ("models/train/train_sft.sql", "        license,", "        upper(license) as license,"),
}


class History(RuleBasedStateMachine):
    """A lake, a project, and what happens to them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="history"))
        self.project = self.folder / "project"
        init(self.project)
        self.home = str(self.folder / "lake")
        self.workspace = "one"
        self.files = 0
        self.turns: dict[str, int] = defaultdict(int)
        self.steps = 0
        self.land_lines("synthetic", "first", [_chat("bread", "oven")])
        self.land_lines("benchmark", "farm", [{"question": QUESTIONS[0], "answer": "many, and all of them are brown"}])
        self.compare()

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @property
    def paths(self) -> LakePaths:
        return LakePaths(self.home, self.folder / f"{self.workspace}.duckdb", self.project)

    def land_lines(self, kind: str, source: str, rows: list[Any], name: str = "", **options: Any) -> Path:
        """Land JSON lines, of a new file unless a name is given."""
        self.files += 1
        path = self.folder / "in" / source / (name or f"{self.files}.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
        land([path], kind, source, home=self.home, root=path.parent, **options)
        return path

    @rule(
        said=st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), min_size=1, max_size=3),
        licence=LICENCES,
    )
    def chats_land(self, said: list[tuple[str, str]], licence: str) -> None:
        """Chats, some of them again, and a line that is none."""
        self.land_lines("synthetic", "chats", [*(_chat(*pair) for pair in said), "{"], license=licence)
        self.check()

    @rule(session=st.sampled_from("ab"), lines=st.integers(1, 2))
    def a_log_grows(self, session: str, lines: int) -> None:
        """Lines of a session; those that landed before land no more."""
        self.turns[session] += lines
        rows = [_line(session, number) for number in range(self.turns[session])]
        self.land_lines("traces", "agent", rows, name=f"{session}.jsonl")
        self.check()

    @rule(word=st.sampled_from(WORDS))
    def a_page_lands(self, word: str) -> None:
        self.land_lines("web", "pages", [{"text": f"A page on {word}. It says what there is to say.", "url": None}])
        self.check()

    @rule(place=st.sampled_from([0, 1]), as_answer=st.booleans())
    def an_item_lands(self, place: int, as_answer: bool) -> None:
        """A question, or the answer to one, by which an old item changes."""
        key = f"item{place}"
        row = {"id": key, "answer": "nine"} if as_answer else {"id": key, "question": QUESTIONS[place]}
        self.land_lines("benchmark", "quiz", [row])
        self.check()

    @rule(licence=LICENCES)
    def a_licence_is_amended(self, licence: str) -> None:
        self.land_lines("synthetic", "first", [_chat("bread", "oven")], name="1.jsonl", license=licence, amend=True)
        self.check()

    @rule(name=st.sampled_from(sorted(EDITS)))
    def the_project_is_edited(self, name: str) -> None:
        """There, or back."""
        file, old, new = EDITS[name]
        text = (self.project / file).read_text("utf-8")
        assert (old in text) != (new in text) or old in new
        there = new not in text
        (self.project / file).write_text(text.replace(*((old, new) if there else (new, old))), "utf-8")
        self.check()

    @rule(kernel=st.sampled_from(["chat", "contamination", "document_text"]))
    def a_memo_is_lost(self, kernel: str) -> None:
        shutil.rmtree(Path(self.home) / "memo" / kernel, ignore_errors=True)
        self.land_lines("synthetic", "chats", [_chat("salt", str(self.files))])
        self.check()

    @rule()
    def files_are_joined(self) -> None:
        before, compact.AT_LEAST = compact.AT_LEAST, 2
        try:
            for table in Path(self.home, "raw").iterdir():
                compact.join_small_files(str(table))
        finally:
            compact.AT_LEAST = before
        self.check()

    @rule(seconds=st.floats(2, 12))
    def a_build_is_killed(self, seconds: float) -> None:
        self.land_lines("synthetic", "chats", [_chat("oven", str(self.files))])
        places = {"LAKE_HOME": self.home, "LAKE_WORKSPACE": str(self.paths.workspace)}
        process = subprocess.Popen(
            [sys.executable, "-c", "from lake.cli import main; main()", "build"],
            cwd=self.project, env=os.environ | places, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(seconds)
        process.kill()
        process.wait()
        self.check()

    @rule(workspace=st.sampled_from(["one", "two"]))
    def another_workspace_builds(self, workspace: str) -> None:
        self.workspace = workspace
        self.land_lines("synthetic", "chats", [_chat(workspace, str(self.files))])
        self.check()

    def check(self) -> None:
        """End a step."""
        self.steps += 1
        if self.steps % STEPS_A_COMPARISON == 0:
            self.compare()

    def compare(self) -> None:
        """Build and publish; hold the release against a build of everything."""
        last = Refs(self.home).last()
        may_be_empty = [*last.tables] if last else []
        for _ in range(100):  # the dbt of a build that was killed holds the workspace a moment longer
            try:
                build(self.paths, allow_empty=may_be_empty, quiet=True)
                break
            except duckdb.IOException:
                time.sleep(0.1)
        release = Refs(self.home).find()
        whole = self.folder / "whole.duckdb"
        whole.unlink(missing_ok=True)
        arguments = ["build", "--full-refresh", "--resource-type", "model", "--resource-type", "seed"]
        environment = {"LAKE_HOME": self.home, "LAKE_WORKSPACE": str(whole)}
        code, output = dbt_process.run([*arguments, "--profiles-dir", "lake"], self.project, environment)
        assert code == 0, output[-4000:]
        with duckdb.connect(whole, read_only=True) as connection:
            connection.execute("set timezone = 'UTC'")
            for name, table in release.tables.items():
                expected = _hashes(connection, f"main.{name}")
                files = [*release.snapshot(name).files]
                held = _hashes(connection, f"read_parquet({files})") if files else []
                assert held == expected, name
                assert (table.rows, table.digest) == (len(held), _digest(held)), name


def _hashes(connection: duckdb.DuckDBPyConnection, relation: str) -> list[str]:
    return [h for (h,) in connection.execute(f"select row_hash from {relation} order by row_hash").fetchall()]


def _digest(hashes: list[str]) -> str:
    """Sums modulo 2^64 of the halves of 128-bit hashes."""
    return "".join(f"{sum(int(h[half], 16) for h in hashes) % 2**64:016x}" for half in (slice(16), slice(16, 32)))


def _chat(*said: str) -> dict[str, Any]:
    user, assistant = said
    turns = [
        {"role": "user", "content": f"Tell me: {user}"},
        {"role": "assistant", "content": f"So be it. {assistant}"},
    ]
    return {"messages": turns}


def _line(session: str, number: int) -> dict[str, Any]:
    """A line of a session log, as agents write it."""
    role = "assistant" if number % 2 else "user"
    return {
        "type": role,
        "timestamp": f"2025-06-14T10:{number:02d}:00Z",
        "parentUuid": f"{session}{number - 1}" if number else None,
        "isSidechain": False,
        "sessionId": session,
        "uuid": f"{session}{number}",
        "message": {"role": role, "content": f"Line {number} of session {session}."},
    }


def test_after_any_history_a_release_holds_what_a_build_of_everything_holds() -> None:
    pytest.importorskip("soda_duckdb", reason="the extra soda is not installed")
    phases = [Phase.generate, Phase.shrink] if PROFILE == "attack" else [Phase.generate]
    run_state_machine_as_test(
        History,
        settings=settings(
            max_examples=examples(5 if PROFILE == "attack" else 2),
            stateful_step_count=STEPS,
            derandomize=True,
            deadline=None,
            phases=phases,
            suppress_health_check=[*HealthCheck],
        ),
    )
