"""A job's file says what a job knows, or an error names the key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from lake.errors import UsageError
from training.jobs.config import Job, read_job
from training.jobs.sft import SftJob


@dataclass(frozen=True)
class DpoJob(Job):
    METHOD: ClassVar[str] = "dpo"
    beta: float = 0.1


LEAST: dict[str, Any] = {"model": "wheel:smollm2", "output": "run", "max_steps": 5}


def written(folder: Path, **keys: Any) -> Path:
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(keys))
    return path


def test_a_short_file_is_a_whole_job(tmp_path: Path) -> None:
    assert read_job(written(tmp_path, **LEAST), SftJob) == SftJob("wheel:smollm2", str(tmp_path / "run"), 5)


def test_folders_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs" / "tiny").mkdir(parents=True)
    path = written(tmp_path / "jobs", **LEAST | {"model": "tiny", "chat_template": "t.jinja"})
    monkeypatch.chdir("/")
    job = read_job(path, SftJob)
    assert (job.model, job.output) == (str(tmp_path / "jobs" / "tiny"), str(tmp_path / "jobs" / "run"))
    assert job.chat_template == str(tmp_path / "jobs" / "t.jinja")


def test_a_file_that_is_no_text_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_bytes(b"model: caf\xe9\n")
    with pytest.raises(UsageError, match="cannot be read"):
        read_job(tmp_path / "job.yaml", SftJob)


def test_a_rate_in_yaml_s_short_form_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("model: wheel:smollm2\noutput: run\nmax_steps: 5\nlearning_rate: 2e-5\n")
    assert read_job(path, SftJob).learning_rate == 2e-5


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"learnin_rate": 1e-4}, "learnin_rate is no key of sft jobs. Did you mean learning_rate?"),
        ({"zzz": 1}, "Known keys: model, output"),
        ({"packing": True}, "packing is not allowed: .* row ids"),
        ({"shuffle_dataset": True}, "shuffle_dataset is not allowed"),
        ({"num_train_epochs": 3}, "num_train_epochs is not allowed"),
        ({"max_steps": 0}, "max_steps is 0; expected a whole number above 0"),
        ({"max_steps": None}, "max_steps missing"),
        ({"batch_size": 2.5}, "batch_size is 2.5"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast'"),
        ({"learning_rate": 20}, "learning_rate is 20.0; expected a number between 0 and 1"),
        ({"lora": {"rank": 8}}, "rank is no key of lora"),
        ({"lora": {"r": "big"}}, "lora.r is 'big'"),
        ({"lora": 8}, "lora is 8; expected a mapping"),
        ({"seed": "x"}, "seed is 'x'"),
        ({"where": 3}, "where is 3; expected text"),
    ],
)
def test_what_a_job_does_not_know_is_named(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_job(written(tmp_path, **LEAST | more), SftJob)


def test_a_job_of_another_method_is_named_by_its_method(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="bta is no key of dpo jobs"):
        read_job(written(tmp_path, **LEAST, bta=0.1), DpoJob)


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [", ""])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "job.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"job\.yaml"):
        read_job(tmp_path / "job.yaml", SftJob)
