"""A real lake with a release of chats, a small tokenizer and a tiny model, for the tests of training."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake.identity import H
from lake.query.query import Lake
from lake.schema import PACKAGE, arrow
from lake.storage.refs import Release, TableVersion
from lake.storage.table import append


def chat(i: int) -> list[dict[str, Any]]:
    """Chats of several shapes: plain, several turns, with tools, with a weight."""
    turns: list[dict[str, Any]] = [
        {"role": "user", "content": f"What is {i} plus {i % 7}?"},
        {"role": "assistant", "content": f"The sum is {i + i % 7}."},
    ]
    if i % 3 == 1:
        turns += [
            {"role": "user", "content": "And twice that?"},
            {"role": "assistant", "content": f"{2 * (i + i % 7)}"},
        ]
    if i % 5 == 2:
        call = {"id": f"call{i:05d}", "name": "add", "arguments": json.dumps({"a": i, "b": [i % 7, "x"]})}
        turns[1:1] = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": str(i + i % 7), "tool_call_id": call["id"], "name": "add"},
        ]
    if i % 11 == 3:
        turns = [{"role": "system", "content": "Be exact."}, *turns[:-1], turns[-1] | {"weight": 1}]
    return turns


TOOLS = json.dumps([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}])


def sft_rows(n: int) -> list[dict[str, Any]]:
    """n rows of train_sft, in no order."""
    return [
        {
            "example_id": H("example", str(i)), "source": f"s{i % 2}", "kind": "synthetic", "messages": chat(i),
            "tools": TOOLS if i % 5 == 2 else None, "row_hash": H("row", str(i)),
        }
        for i in range(n)
    ]  # fmt: skip


def publish(home: Path, tables: dict[str, list[dict[str, Any]]], files: int = 1) -> Lake:
    """Write tables of the train layer through the one write path, and a release that names them."""
    versions = {}
    for name, rows in tables.items():
        schema, uri = arrow(PACKAGE, f"train/{name}"), str(home / "tables" / name)
        for part in range(files):
            snapshot = append(uri, schema, pa.Table.from_pylist(rows[part::files], schema=schema))
        halves = [sum(int(r["row_hash"][s : s + 16], 16) for r in rows) % 2**64 for s in (0, 16)]
        versions[name] = TableVersion(snapshot.version, len(rows), f"{halves[0]:016x}{halves[1]:016x}", "1.0.0")
    lake = Lake(home)
    last = lake.refs.last()
    number = last.number + 1 if last else 1
    lake.refs.add(Release(number, number - 1 or None, versions, {}, {}, None, "0" * 32, "2026-01-01T00:00:00Z"))
    return lake


@pytest.fixture
def chats(home: Path) -> Lake:
    """A lake whose release 1 has 100 chats in train_sft."""
    return publish(home, {"train_sft": sft_rows(100)}, files=3)


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """A byte-level BPE tokenizer trained on a few texts, with our ChatML template."""
    return make_tokenizer()


def make_tokenizer(template: str | None = None) -> Any:
    """Train the tokenizer."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    from training.models import TEMPLATES

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    smollm2 = (TEMPLATES / "smollm2.jinja").read_text()
    texts = [turn["content"] or "" for i in range(200) for turn in chat(i)] + [template or smollm2, TOOLS] * 20
    special = ["<|end|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=600, special_tokens=special, initial_alphabet=alphabet)
    )
    made = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|end|>")
    made.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    made.chat_template = template or smollm2
    return made


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory, tokenizer: Any) -> Path:
    """A folder with a random LlamaForCausalLM of two layers and its tokenizer."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("tiny")
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=1024, attention_dropout=0.1,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def job_file(tmp_path: Path, tiny_model: Path) -> Callable[..., Path]:
    """Write a job of the tiny model."""
    import yaml

    def write(name: str = "run", **more: Any) -> Path:
        job = {
            "model": str(tiny_model), "output": name, "max_steps": 12, "batch_size": 8, "micro_batch_size": 4,
            "max_length": 600, "learning_rate": 1e-3, "save_steps": 4, "release": 1,
        }  # fmt: skip
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(job | more))
        return path

    return write
