"""README's examples do what they say, typed as they stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def blocks(*languages: str) -> Iterator[tuple[str, str]]:
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL):
        if language in languages:
            yield language, text


def chat(question: str) -> str:
    turns = [{"role": "user", "content": question}, {"role": "assistant", "content": f"You asked: {question}"}]
    return json.dumps({"messages": turns})


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and the output of all examples, run one after the other in one shell."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "logs").mkdir()
    (folder / "bench").mkdir()
    leaked = "Which three rivers does the old trade road from the salt mines to the coast have to cross on its way?"
    questions = [*(f"Where is parcel {n}?" for n in range(8)), "Where is parcel 3?", leaked]
    (folder / "logs" / "chats.jsonl").write_text("\n".join([*map(chat, questions), '{"messages": [{']) + "\n")
    (folder / "bench" / "quiz.jsonl").write_text(json.dumps({"question": leaked, "answer": "None."}) + "\n")
    script = ["set -euo pipefail"]
    for language, text in blocks("sh", "python"):
        lines = [line for line in text.splitlines() if not line.startswith("pip install")]
        body = "\n".join(lines)
        script.append(f"python - <<'EOF'\n{body}\nEOF" if language == "python" else body)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LAKE_")} | {"PATH": path}
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=folder, env=environment, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


@pytest.mark.integration
def test_the_examples_run_and_find_the_copy_the_leak_and_the_broken_line(output: tuple[Path, str]) -> None:
    _, said = output
    assert "8 rows of release 1" in said  # of ten chats one is a copy and one holds a benchmark item
    assert "exact_duplicate" in said
    assert "contaminated" in said
    rejects = json.loads(next(line for line in said.splitlines() if line.startswith("[{") and "chats.jsonl" in line))
    assert [(r["path"], r["position"]) for r in rejects] == [("chats.jsonl", 11)]


@pytest.mark.integration
def test_the_examples_leave_what_they_promise(output: tuple[Path, str]) -> None:
    folder, _ = output
    import polars as pl

    assert pl.read_parquet(folder / "shop" / "sft.parquet").height == 8
    shards = sorted((folder / "shop" / "shards").glob("*.jsonl"))
    assert [sum(1 for _ in s.open()) for s in shards] == [4, 4]
    assert (folder / "shop" / "shards" / "manifest.json").is_file()


def test_the_job_of_the_readme_is_one_that_train_takes(tmp_path: Path) -> None:
    from training.jobs.config import read_job
    from training.jobs.sft import SftJob

    ((_, text),) = blocks("yaml")
    (tmp_path / "job.yaml").write_text(text)
    job = read_job(tmp_path / "job.yaml", SftJob)
    assert (job.model, job.max_steps, job.release) == ("wheel:smollm2", 20, "first")


def test_ci_runs_what_the_readme_says_to_copy() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    steps = {s["run"] for s in workflow["jobs"]["project"]["steps"] if "run" in s}
    section = README.split("## In CI", 1)[1].split("```sh\n", 1)[1].split("```", 1)[0]
    assert {line.split("#")[0].strip() for line in section.splitlines()} <= steps


def test_readme_opens_with_the_two_commands_a_newcomer_needs() -> None:
    first = README.split("```", 2)[1]
    assert [line.split("#")[0].strip() for line in first.strip().splitlines()] == ["make demo", "make test"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(f"\n{target}: " in makefile for target in ("demo", "test", "lint", "bench", "clean"))
    contributing = (ROOT / ".github" / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", README + contributing, flags=re.MULTILINE))
    assert named >= {"demo", "check", "test", "slow", "attack", "lint", "bench"}
    assert [target for target in sorted(named) if f"\n{target}: " not in makefile] == []


def test_readme_names_every_extra() -> None:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [e for e in extras if f"`{e}`" not in README] == []
