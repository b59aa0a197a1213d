"""TRL's trainers over a LakeStream: each trains the rows of the stream and records them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, KTOConfig, KTOTrainer
from trl.trainer.kto_trainer import DataCollatorForUnpairedPreference

from lake.errors import InternalError, UsageError
from training.order import Position
from training.stream import LakeStream
from training.trainer import StreamTrainerMixin, TrainedRow

pytestmark = pytest.mark.integration
ROWS, BATCH, STEPS = 10, 4, 3  # 12 rows of 10: into the second epoch


class Cache:
    """Rows in memory, as a `RowCache`."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.meta = {"digest": "0123456789abcdef"}
        self.lengths = np.ones(len(rows), dtype=np.int64)

    def row(self, index: int) -> dict[str, Any]:
        return self.rows[index]

    def ids(self, indices: np.ndarray) -> list[str]:
        return [f"id{i}" for i in indices]


class StreamDpoTrainer(StreamTrainerMixin, DPOTrainer):
    pass


class StreamKtoTrainer(StreamTrainerMixin, KTOTrainer):
    pass


class StreamGrpoTrainer(StreamTrainerMixin, GRPOTrainer):
    pass


class RotateCompletions:
    """KTO estimates its KL term from each prompt with the completion of the row before it in the batch."""

    def __init__(self, pad: int) -> None:
        self.collate = DataCollatorForUnpairedPreference(pad)

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        completions = [row["completion_ids"] for row in rows]
        rotated = [completions[-1], *completions[:-1]]
        return self.collate([{**row, "KL_completion_ids": ids} for row, ids in zip(rows, rotated, strict=True)])


@pytest.fixture(scope="module")
def tokens(tokenizer: Any) -> Callable[[str], list[int]]:
    return lambda text: list(tokenizer(text)["input_ids"])


def pairs(tokens: Callable[[str], list[int]]) -> Cache:
    texts = [(f"What is {i} plus {i}?", f"{2 * i}<|im_end|>", f"I like {i}.<|im_end|>") for i in range(ROWS)]
    names = ("prompt_ids", "chosen_ids", "rejected_ids")
    return Cache([dict(zip(names, map(tokens, row), strict=True)) for row in texts])


def labelled(tokens: Callable[[str], list[int]]) -> Cache:
    rows = [(f"What is {i} plus {i}?", f"{2 * i}<|im_end|>", i % 3 > 0) for i in range(ROWS)]
    return Cache([{"prompt_ids": tokens(p), "completion_ids": tokens(c), "label": label} for p, c, label in rows])


def stream_of(cache: Cache, batch: int = BATCH, batches: int = STEPS, **where: Any) -> LakeStream:
    return LakeStream(cache, max_length=None, seed=3, batch_size=batch, batches=batches, **where)


def arguments(folder: Path, config: Any, **more: Any) -> Any:
    common = {
        "output_dir": str(folder), "max_steps": STEPS, "per_device_train_batch_size": BATCH, "use_cpu": True,
        "bf16": False, "activation_checkpointing": False, "report_to": [], "save_strategy": "no", "disable_tqdm": True,
        "logging_steps": 1, "learning_rate": 1e-3, "remove_unused_columns": False, "ignore_data_skip": True,
    }  # fmt: skip
    return config(**common | more)


def trained_by(trainer: Any) -> list[TrainedRow]:
    """Train; return the record after checking that the model was trained on each step."""
    before = {name: value.clone() for name, value in trainer.model.named_parameters()}
    trainer.train()
    losses = [log["loss"] for log in trainer.state.log_history if "loss" in log]
    assert trainer.state.global_step == STEPS and len(losses) == STEPS and np.isfinite(losses).all()
    assert any(not value.equal(before[name]) for name, value in trainer.model.named_parameters())
    return trainer.trained


def expected_of(cache: Cache, rows_a_step: int = BATCH) -> list[TrainedRow]:
    """What the stream's arithmetic says."""
    order = stream_of(cache).order
    places = range(STEPS * rows_a_step)
    rows = order.take(0, len(places)).tolist()
    return [TrainedRow(1 + p // rows_a_step, p, p // ROWS, row) for p, row in zip(places, rows, strict=True)]


def test_dpo_trains_the_pairs_of_the_stream_as_they_are(
    tokens: Callable[[str], list[int]], tiny_model: Path, tmp_path: Path
) -> None:
    cache, seen = pairs(tokens), []

    class Spy(StreamDpoTrainer):
        def _compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append({name: value.clone() for name, value in inputs.items()})
            return super()._compute_loss(model, inputs, *args, **kwargs)

    trainer = Spy(
        stream_of(cache), model=AutoModelForCausalLM.from_pretrained(tiny_model),
        args=arguments(tmp_path, DPOConfig, max_length=None),
        processing_class=AutoTokenizer.from_pretrained(tiny_model),
    )  # fmt: skip
    assert trained_by(trainer) == expected_of(cache)
    assert trainer.position == Position(1, 2)
    for batch, step in zip(seen, range(STEPS), strict=True):
        rows = [cache.row(trained.row) for trained in expected_of(cache)[step * BATCH :][:BATCH]]
        wanted = trainer.data_collator(rows)
        assert batch.keys() == wanted.keys()
        assert all(batch[name].equal(wanted[name]) for name in wanted)


def test_dpo_goes_on_from_a_position_and_through_accumulated_batches(
    tokens: Callable[[str], list[int]], tiny_model: Path, tmp_path: Path
) -> None:
    cache = pairs(tokens)
    trainer = StreamDpoTrainer(
        stream_of(cache, batch=2, batches=2 * STEPS, start=Position(0, 7)),
        model=AutoModelForCausalLM.from_pretrained(tiny_model),
        args=arguments(
            tmp_path, DPOConfig, max_length=None, per_device_train_batch_size=2, gradient_accumulation_steps=2
        ),
        processing_class=AutoTokenizer.from_pretrained(tiny_model),
    )  # fmt: skip
    rows = stream_of(cache).order.take(7, 7 + STEPS * BATCH).tolist()
    expected = [TrainedRow(1 + i // BATCH, 7 + i, (7 + i) // ROWS, row) for i, row in enumerate(rows)]
    assert trained_by(trainer) == expected
    assert trainer.position == Position(1, 9)


def test_kto_trains_the_rows_of_the_stream_with_the_batches_that_its_own_preparation_makes(
    tokens: Callable[[str], list[int]], tiny_model: Path, tmp_path: Path
) -> None:
    cache, seen = labelled(tokens), []
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)

    class Spy(StreamKtoTrainer):
        def _compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append({name: value.clone() for name, value in inputs.items()})
            return super()._compute_loss(model, inputs, *args, **kwargs)

    trainer = Spy(
        stream_of(cache), model=AutoModelForCausalLM.from_pretrained(tiny_model),
        args=arguments(tmp_path, KTOConfig, max_length=None, train_sampling_strategy="sequential"),
        processing_class=tokenizer, data_collator=RotateCompletions(tokenizer.pad_token_id),
    )  # fmt: skip
    assert trained_by(trainer) == expected_of(cache)
    # The same rows, as text, through TRL's preparation.
    first = [cache.row(trained.row) for trained in expected_of(cache)[:BATCH]]
    decoded = {name: tokenizer.batch_decode([row[f"{name}_ids"] for row in first]) for name in ("prompt", "completion")}
    texts = Dataset.from_dict(decoded | {"label": [row["label"] for row in first]})
    prepared = KTOTrainer._prepare_dataset(trainer, texts, tokenizer, trainer.args, "train")
    wanted = DataCollatorForUnpairedPreference(tokenizer.pad_token_id)(list(prepared))
    assert seen[0].keys() == wanted.keys()
    assert all(seen[0][name].equal(wanted[name]) for name in wanted)


def test_grpo_generates_for_the_rows_of_the_stream(tiny_model: Path, tmp_path: Path) -> None:
    cache, rewarded = Cache([{"prompt": f"What is {i} plus {i}?", "example_id": f"id{i}"} for i in range(ROWS)]), []

    def reward(completions: list[str], example_id: list[str], **_: Any) -> list[float]:
        rewarded.append(example_id)
        return [float(i) for i in range(len(completions))]

    trainer = StreamGrpoTrainer(
        stream_of(cache, batch=BATCH // 2), model=AutoModelForCausalLM.from_pretrained(tiny_model), reward_funcs=reward,
        args=arguments(tmp_path, GRPOConfig, num_generations=2, max_completion_length=4, shuffle_dataset=False),
        processing_class=AutoTokenizer.from_pretrained(tiny_model),
    )  # fmt: skip
    trained = trained_by(trainer)
    assert trained == expected_of(cache, BATCH // 2)
    assert rewarded == [[f"id{t.row}" for t in trained if t.step == s for _ in range(2)] for s in (1, 2, 3)]


def test_what_would_hide_which_rows_a_step_trains_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    cache = Cache([{"prompt": "hi"}] * ROWS)

    def open_trainer(**more: Any) -> None:
        StreamGrpoTrainer(
            stream_of(cache), model=AutoModelForCausalLM.from_pretrained(tiny_model),
            args=arguments(tmp_path, GRPOConfig, **{"max_completion_length": 4, "num_generations": 2} | more),
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            processing_class=AutoTokenizer.from_pretrained(tiny_model),
        )  # fmt: skip

    with pytest.raises(UsageError, match="steps_per_generation is 2"):
        open_trainer(gradient_accumulation_steps=2)
    with pytest.raises(UsageError, match="num_iterations is 2"):
        open_trainer(num_iterations=2)
    with pytest.raises(UsageError, match="no multiple of num_generations 4"):
        open_trainer(num_generations=4, per_device_train_batch_size=2, gradient_accumulation_steps=2)


@pytest.mark.parametrize("wrong", ["another row", "another order"])
def test_a_batch_that_is_not_the_stream_s_stops_the_run(
    tokens: Callable[[str], list[int]], tiny_model: Path, tmp_path: Path, wrong: str
) -> None:
    cache = pairs(tokens)

    class Broken(LakeStream):
        def __iter__(self) -> Any:
            rows = list(super().__iter__())
            if wrong == "another order":
                rows[5], rows[6] = rows[6], rows[5]
            else:
                rows[5] |= {"row": (rows[5]["row"] + 1) % ROWS}
            return iter(rows)

    trainer = StreamDpoTrainer(
        Broken(cache, max_length=None, seed=3, batch_size=BATCH, batches=STEPS),
        model=AutoModelForCausalLM.from_pretrained(tiny_model), args=arguments(tmp_path, DPOConfig, max_length=None),
        processing_class=AutoTokenizer.from_pretrained(tiny_model),
    )  # fmt: skip
    with pytest.raises(InternalError, match="batch 1 held rows"):
        trainer.train()
    assert [trained.step for trained in trainer.trained] == [1] * BATCH
