"""What lands is what a model of sets says, whatever landed before, was joined, amended, or lost its index."""

from __future__ import annotations

import json
import random
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import SourceError
from lake.identity import H
from lake.landing.land import Summary, land
from lake.storage import table
from tests.effort import examples
from tests.lake.landing.landed import content, rows


def chat(text: str) -> str:
    return json.dumps({"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]})


# Few lines, so that files share beginnings, are grown from one another, and are met again.
LINES = [chat("a"), chat("b"), chat("c"), "{broken", "[1,]"]


@dataclass
class Model:
    """A lake as sets: ids with their facts, ids of rejects, and what bytes each source has done with what facts."""

    facts: dict[str, str] = field(default_factory=dict)
    rejects: set[str] = field(default_factory=set)
    done: dict[tuple[str, str], str] = field(default_factory=dict)

    def land(self, files: list[list[str]], source: str, license: str, amend: bool) -> tuple[int, int, int] | None:
        """Return how many records landed, were there and were rejected; None where facts differ."""
        facts, rejects, done = dict(self.facts), set(self.rejects), dict(self.done)
        counts: Counter[str] = Counter()
        for lines in files:
            text = "\n".join(lines)
            before = self.done.get((source, text), license)
            if before != license and not amend:
                return None
            done[source, text] = license
            if self.done.get((source, text)) == license:
                counts["already"] += len(lines)
                continue
            previous = ""
            for line in lines:
                previous = H("record", "traces", source, previous, line)
                if line not in LINES[:3]:
                    counts["already" if previous in rejects else "rejected"] += 1
                    rejects.add(previous)
                elif previous not in facts:
                    counts["landed"] += 1
                    facts[previous] = license
                else:
                    counts["already"] += 1
                    if facts[previous] != license and not amend:
                        return None
                    facts[previous] = license
        self.facts, self.rejects, self.done = facts, rejects, done
        return counts["landed"], counts["already"], counts["rejected"]


@dataclass(frozen=True)
class Step:
    files: list[list[str]]
    source: str
    license: str
    amend: bool
    has_index: bool
    group_rows: int
    join_at: int
    lookup_bytes: int
    damaged: int | None


lines_of_a_file = st.lists(st.sampled_from(LINES), max_size=7).map(lambda lines: [LINES[0], *lines])
steps = st.builds(
    Step,
    files=st.lists(lines_of_a_file, min_size=1, max_size=3),
    source=st.sampled_from("st"),
    license=st.sampled_from(["CC0-1.0", "CC0-1.0", "CC0-1.0", "MIT"]),
    amend=st.booleans(),
    has_index=st.sampled_from([True, True, False]),
    group_rows=st.integers(1, 9),
    join_at=st.sampled_from([2, 3, 100]),
    lookup_bytes=st.sampled_from([1, 32 << 20]),
    damaged=st.none() | st.integers(0, 100),
)


def damage(home: Path, seed: int) -> None:
    """Overwrite what lies before the footer of some file, which is its index where it has one."""
    draw = random.Random(seed)
    files = [file for name in ("traces", "rejects") for file in sorted((home / "raw" / name).glob("*.parquet"))]
    if not files:
        return
    path = draw.choice(files)
    data = bytearray(path.read_bytes())
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    if data[end - 16 : end - 8] == b"LakeKey1":
        size = draw.choice([16, 100, 144, 648])
        data[end - size : end] = draw.choice([bytes(size), draw.randbytes(size)])
        path.write_bytes(data)


def landed(folder: Path, home: Path, step: Step) -> Summary | None:
    for number, lines in enumerate(step.files):
        (folder / f"{number}.jsonl").write_text("\n".join(lines))
    paths = [folder / f"{number}.jsonl" for number in range(len(step.files))]
    with ExitStack() as stack:
        stack.enter_context(patch("lake.storage.parquet.GROUP_ROWS", step.group_rows))
        stack.enter_context(patch("lake.storage.key_index.MAX_GROUPS", (1 << 16) * step.has_index))
        stack.enter_context(patch("lake.landing.ledger.BLOCK_ROWS", 2))
        stack.enter_context(patch("lake.storage.compact.AT_LEAST", step.join_at))
        stack.enter_context(patch("lake.landing.loader.LOOKUP_BYTES", step.lookup_bytes))
        try:
            return land(
                paths, "traces", step.source, format="openai_chat", license=step.license, amend=step.amend, home=home
            )
        except SourceError:
            return None


@pytest.mark.integration
@settings(max_examples=examples(40))
@given(history=st.lists(steps, min_size=2, max_size=7))
def test_any_history_of_landings_gives_what_a_model_of_sets_does(
    tmp_path_factory: pytest.TempPathFactory, history: list[Step]
) -> None:
    folder, home, model = tmp_path_factory.mktemp("in"), tmp_path_factory.mktemp("lake"), Model()
    for step in history:
        expected = model.land(step.files, step.source, step.license, step.amend)
        summary = landed(folder, home, step)
        assert expected == (summary and (summary.landed, summary.already, summary.rejected))
        if step.damaged is not None:
            damage(home, step.damaged)
    facts = dict(rows(home, "traces", "record_id, license"))
    assert len(facts) == len(rows(home, "traces", "record_id"))
    facts |= {record: license for _, record, license in rows(home, "amendments", "amended_at, record_id, license")}
    assert facts == model.facts
    assert sorted(model.rejects) == [x for (x,) in rows(home, "rejects", "reject_id")]


def test_a_record_that_begins_like_another_lands(home: Path, tmp_path: Path) -> None:
    """Its index holds 64 bits of an id: the rest is told by the rows."""
    (tmp_path / "x.jsonl").write_text("\n".join(chat(str(n)) for n in range(20)))
    land([tmp_path / "x.jsonl"], "traces", "s", home=tmp_path / "apart")
    apart = table.snapshot(str(tmp_path / "apart/raw/traces"))
    assert apart is not None
    there = pa.concat_tables(pq.read_table(file) for file in apart.files)
    planted = [x[:16] + "0" * 16 for x in there["record_id"].to_pylist()]
    table.append(f"{home}/raw/traces", apart.schema, there.set_column(0, apart.schema.field(0), [planted]))
    summary = land([tmp_path / "x.jsonl"], "traces", "s", home=home)
    assert (summary.landed, summary.already) == (20, 0)
    assert len(rows(home, "traces", where="record_id not like '%0000000000000000'")) == 20


def test_a_landing_opens_each_table_once(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a table is most of what a small landing costs, and grows with the number of its commits."""
    opened: Counter[str] = Counter()
    open_table = DeltaTable.__init__

    def counted(self: DeltaTable, uri: str, *args: Any, **keywords: Any) -> None:
        opened[uri.rsplit("/", 1)[-1]] += 1
        open_table(self, uri, *args, **keywords)

    monkeypatch.setattr(DeltaTable, "__init__", counted)
    for n in range(3):
        (tmp_path / "x.jsonl").write_text("\n".join([*(chat(str(k)) for k in range(n + 1)), *["{broken"] * n]))
        opened.clear()
        land([tmp_path / "x.jsonl"], "traces", "s")
    assert opened == {"traces": 1, "rejects": 1, "amendments": 1, "landings": 1}
    assert len(content(home, "traces")[0]) == 3
