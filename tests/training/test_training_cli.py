"""`lake export`, `lake train sft` and `lake runs` as a user calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import lake.cli
from lake.query.query import Lake


def run(*args: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(lake.cli.main, list(args))
    return done.exit_code, done.stdout, done.stderr


def test_export_prints_what_it_did_and_again_that_it_is_there(chats: Lake, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    code, text, _ = run("export", "train_sft", "--release", "1", "--shards", "2", "--out", out)
    assert code == 0 and "100 rows of train_sft, release 1, in 2 jsonl shards" in text
    code, text, _ = run("export", "train_sft", "--out", out, "--shards", "2", "--json")
    said = json.loads(text)
    assert code == 0 and said["already"] is True and said["rows"] == 100 and said["path"] == out


@pytest.mark.parametrize(
    ("args", "found"),
    [
        (["export", "train_stf", "--out", "x"], "release 1 has no table 'train_stf'"),
        (["export", "train_sft", "--release", "9", "--out", "x"], "no release 9"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(chats: Lake, args: list[str], found: str) -> None:
    code, _, text = run(*args)
    assert code == 2 and found in text and "Traceback" not in text


@pytest.mark.integration
def test_a_job_trains_from_the_command_and_is_listed(chats: Lake, job_file: Callable[..., Path]) -> None:
    code, text, _ = run("runs")
    assert code == 0 and "no runs yet" in text
    code, text, _ = run("train", "sft", str(job_file(max_steps=2)), "--json")
    said = json.loads(text)
    assert code == 0 and said["steps"] == 2
    (listed,) = json.loads(run("runs", "--json")[1])
    assert (listed["run_id"], listed["state"], listed["release"]) == (said["run_id"], "finished", 1)
    (started,) = json.loads(run("sql", "select min(registered_at) as at from log.runs", "--format", "json")[1])
    assert listed["started_at"] == started["at"]
    assert said["run_id"][:12] in run("runs")[1]
    code, text, _ = run("train", "sft", str(job_file(max_steps=2)))
    assert code == 0 and "is done already" in text
    code, _, text = run("train", "sft", str(job_file(max_steps=3)))
    assert code == 2 and "a run with another max_steps" in text


def test_neither_the_command_nor_export_loads_torch(chats: Lake, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; import lake.cli; from training.cli import run_export;"
        f"run_export('train_sft', None, 'jsonl', 1, Path({str(tmp_path / 'o')!r}), True);"
        "assert not {'torch', 'trl', 'transformers', 'datasets', 'matplotlib'} & set(sys.modules), 'heavy'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_missing_extra_is_named(chats: Lake, job_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "trl" else find(name, *a))
    code, _, text = run("train", "sft", str(job_file()))
    assert code == 2 and "trl is not installed" in text and "lakewright[train]" in text
