"""`lake export`: bytes that depend on the release and nothing else, and JSONL that trains."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake.errors import UsageError
from lake.identity import H
from lake.query.query import Lake
from tests.training.conftest import publish, sft_rows
from training.shards import export


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for p in sorted(folder.glob("*.jsonl")) for line in p.read_bytes().splitlines()]


class Choppy(Lake):
    """Gives batches of 13 rows; DuckDB's own never have fewer than 2,048."""

    @contextmanager
    def batches(self, *args: Any) -> Iterator[pa.RecordBatchReader]:
        with super().batches(*args) as reader:
            pieces = [batch.slice(i, 13) for batch in reader for i in range(0, batch.num_rows, 13)]
            yield pa.RecordBatchReader.from_batches(reader.schema, pieces)


@pytest.mark.parametrize("file_format", ["jsonl", "parquet", "openai"])
def test_bytes_do_not_depend_on_file_layout_batches_or_arrival(tmp_path: Path, file_format: str) -> None:
    rows = sft_rows(1500)
    for row in rows:  # over a megabyte a column: where Parquet ends a page, chunks would show
        row["messages"][0] |= {"content": "".join(H(row["example_id"], str(i)) for i in range(40))}
    one = publish(tmp_path / "one", {"train_sft": rows})
    other = publish(tmp_path / "other", {"train_sft": rows[::-1]}, files=7)
    export("train_sft", tmp_path / "a", file_format=file_format, lake=one)
    export("train_sft", tmp_path / "b", file_format=file_format, lake=Choppy(other.home))
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")


def test_shards_hold_every_row_once_in_id_order_and_the_manifest_says_where(chats: Lake, tmp_path: Path) -> None:
    said = export("train_sft", tmp_path / "out", shards=3, lake=chats)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    ids = [row["example_id"] for row in lines(tmp_path / "out")]
    assert ids == sorted(chats.sql("select example_id from train_sft")["example_id"])
    assert [s["rows"] for s in manifest["shards"]] == [33, 33, 34]
    assert manifest["release"] == 1 and manifest["contract_version"] == "1.0.0" and said["already"] is False
    for shard in manifest["shards"]:
        data = (tmp_path / "out" / shard["file"]).read_bytes()
        assert shard["sha256"] == hashlib.sha256(data).hexdigest() and shard["bytes"] == len(data)
        assert json.loads(data.splitlines()[0])["example_id"] == shard["first_id"]
    where = chats.sql("select example_id, shard, position from log.export_rows order by shard, position").rows()
    assert where == [
        (row["example_id"], p.name, i)
        for p in sorted((tmp_path / "out").glob("*.jsonl"))
        for i, row in enumerate(map(json.loads, p.read_bytes().splitlines()))
    ]
    assert pq.read_table(tmp_path / "out" / "row_ids.parquet")["example_id"].to_pylist() == ids


def test_exporting_again_says_that_it_is_there_and_changes_nothing(chats: Lake, tmp_path: Path) -> None:
    export("train_sft", tmp_path / "out", lake=chats)
    before = bytes_of(tmp_path / "out")
    assert export("train_sft", tmp_path / "out", lake=chats)["already"] is True
    assert bytes_of(tmp_path / "out") == before
    assert chats.sql("select count(*) from log.exports").item() == 1
    assert chats.sql("select count(*) from log.export_rows").item() == 100


def test_another_export_or_a_changed_shard_or_other_files_are_not_overwritten(chats: Lake, tmp_path: Path) -> None:
    export("train_sft", tmp_path / "out", lake=chats)
    with pytest.raises(UsageError, match="holds another export"):
        export("train_sft", tmp_path / "out", file_format="parquet", lake=chats)
    shard = next((tmp_path / "out").glob("*.jsonl"))
    shard.write_bytes(shard.read_bytes()[:-10])
    with pytest.raises(UsageError, match="checksum"):
        export("train_sft", tmp_path / "out", lake=chats)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(UsageError, match="holds no export"):
        export("train_sft", tmp_path / "mine", lake=chats)
    assert [p.name for p in tmp_path.glob(".*draft")] == []


def test_more_shards_than_rows_gives_empty_shards(tmp_path: Path) -> None:
    small = publish(tmp_path / "lake", {"train_sft": sft_rows(2)})
    for file_format in ("jsonl", "parquet"):
        export("train_sft", tmp_path / file_format, file_format=file_format, shards=3, lake=small)
    assert len(lines(tmp_path / "jsonl")) == 2
    assert [pq.read_table(p).num_rows for p in sorted((tmp_path / "parquet").glob("train*"))] == [0, 1, 1]


def test_jsonl_loads_with_datasets_without_a_null_key_and_trains_in_trl_as_it_is(
    chats: Lake, tmp_path: Path, tiny_model: Path
) -> None:
    from datasets import load_dataset
    from transformers import AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    export("train_sft", tmp_path / "out", shards=2, lake=chats)
    files = sorted(map(str, (tmp_path / "out").glob("*.jsonl")))
    dataset = load_dataset("json", data_files=files, split="train", cache_dir=str(tmp_path / "hf"))
    # The loader takes types from its first 10 MB: with pieces of one row, rows of another shape come after.
    pieces = load_dataset("json", data_files=files, split="train", cache_dir=str(tmp_path / "hf2"), chunksize=100)
    assert list(pieces) == list(dataset)
    assert dataset.column_names == ["example_id", "messages", "tools"]
    assert [dict(row) for row in dataset] == lines(tmp_path / "out")
    turns = [turn for row in dataset for turn in row["messages"]]
    assert all(value is not None for turn in turns for value in turn.values())
    calls = [call for turn in turns for call in turn.get("tool_calls", [])]
    assert calls and all(isinstance(call["function"]["arguments"], dict) for call in calls)
    args = SFTConfig(
        str(tmp_path / "trl"), max_steps=1, per_device_train_batch_size=2, use_cpu=True, bf16=False,
        gradient_checkpointing=False, report_to=[], assistant_only_loss=True, logging_steps=1,
    )  # fmt: skip
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    trainer = SFTTrainer(str(tiny_model), args=args, train_dataset=dataset, processing_class=tokenizer)
    assert 0 < trainer.train().training_loss < 100


def test_trl_masks_the_exported_rows_as_our_stream_does(chats: Lake, tmp_path: Path, tokenizer: Any) -> None:
    from training.masks import ChatEncoder

    export("train_sft", tmp_path / "out", lake=chats)
    table = chats.sql("select example_id, messages, tools from train_sft order by example_id").to_dicts()
    encoder = ChatEncoder(tokenizer)
    for row, ours in zip(lines(tmp_path / "out"), table, strict=True):
        theirs = tokenizer.apply_chat_template(
            row["messages"], tools=json.loads(row["tools"]), tokenize=True, return_dict=True,
            return_assistant_tokens_mask=True,
        )  # fmt: skip
        encoded = encoder.encode(ours["messages"], ours["tools"])
        assert theirs["input_ids"] == encoded.input_ids
        assert list(map(bool, theirs["assistant_masks"])) == encoded.trains


def test_pairs_and_labels_take_the_columns_of_their_trainers(tmp_path: Path) -> None:
    prompt = [{"role": "user", "content": "Say yes."}]
    yes, no = [{"role": "assistant", "content": "yes"}], [{"role": "assistant", "content": "no"}]
    pair = {
        "example_id": "p",
        "source": "s",
        "kind": "synthetic",
        "messages": prompt,
        "chosen": yes,
        "rejected": no,
        "row_hash": "0" * 32,
    }
    label = {
        "example_id": "u",
        "source": "s",
        "kind": "synthetic",
        "messages": prompt + no,
        "label": False,
        "row_hash": "1" * 32,
    }
    made = publish(tmp_path / "lake", {"train_preference": [pair], "train_unpaired": [label]})
    export("train_preference", tmp_path / "p", lake=made)
    export("train_unpaired", tmp_path / "u", lake=made)
    export("train_preference", tmp_path / "o", file_format="openai", lake=made)
    answer = {"role": "assistant", "content": "yes", "weight": 1}
    assert lines(tmp_path / "p") == [
        {"example_id": "p", "prompt": prompt, "chosen": [answer], "rejected": [answer | {"content": "no"}]}
    ]
    assert lines(tmp_path / "u") == [
        {"example_id": "u", "prompt": prompt, "completion": [answer | {"content": "no"}], "label": False}
    ]
    assert lines(tmp_path / "o") == [
        {"input": {"messages": prompt}, "preferred_output": yes, "non_preferred_output": no}
    ]


def test_provider_rows_hold_arguments_as_json_text(chats: Lake, tmp_path: Path) -> None:
    export("train_sft", tmp_path / "out", file_format="openai", lake=chats)
    rows = lines(tmp_path / "out")
    calls = [call for row in rows for turn in row["messages"] for call in turn.get("tool_calls", [])]
    assert calls and all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)
    assert all(set(row) <= {"messages", "tools"} for row in rows)
    assert all(isinstance(row["tools"], list) for row in rows if "tools" in row)
