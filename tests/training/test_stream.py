"""The token cache and LakeStream over a real release."""

from __future__ import annotations

import ast
import dataclasses
import multiprocessing
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

import training.tokens
from lake.errors import InternalError, QueryError, UsageError
from lake.query.query import Lake
from tests.training.conftest import make_tokenizer, publish, sft_rows
from training.checks import first_examples, preflight
from training.masks import ChatEncoder, MaskError
from training.order import Position
from training.stream import LakeStream
from training.tables import open_table
from training.tokens import SOURCES, TokenCache, cache_key, token_cache


def cached(lake: Lake, tokenizer: Any, root: Path, where: str | None = None) -> TokenCache:
    return token_cache(lake, open_table(lake, "train_sft"), ChatEncoder(tokenizer), where, root)


def rows_of(stream: LakeStream, workers: int = 0, own: int = 4) -> list[int]:
    loader = DataLoader(stream, batch_size=own, collate_fn=lambda rows: [r["row"] for r in rows], num_workers=workers)
    return [row for batch in loader for row in batch]


def test_the_cache_holds_every_row_in_id_order_as_the_encoder_gives_it(
    chats: Lake, tokenizer: Any, tmp_path: Path
) -> None:
    cache, encoder = cached(chats, tokenizer, tmp_path / "c"), ChatEncoder(tokenizer)
    table = chats.sql("select example_id, messages, tools from train_sft order by example_id").to_dicts()
    assert cache.ids(np.arange(len(cache))) == [row["example_id"] for row in table]
    for i, row in enumerate(table):
        expected = encoder.encode(row["messages"], row["tools"])
        ids, labels = cache.row(i)["input_ids"], cache.row(i)["labels"]
        assert (ids.tolist(), labels.tolist()) == (expected.input_ids, expected.labels)
    assert cache.meta["rows"] == 100 and cache.meta["tokens"] == int(cache.lengths.sum())


def test_a_second_opening_tokenises_nothing(
    chats: Lake, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cached(chats, tokenizer, tmp_path / "c")
    monkeypatch.setattr(ChatEncoder, "encode", None)
    assert cached(chats, tokenizer, tmp_path / "c").path == first.path


def test_digest_predicate_template_tokenizer_and_id_column_make_other_caches(chats: Lake, tokenizer: Any) -> None:
    table, other = open_table(chats, "train_sft"), make_tokenizer()
    other.add_tokens(["qq"])
    keys = [
        cache_key(table, ChatEncoder(tokenizer), None),
        cache_key(table, ChatEncoder(tokenizer), "source = 's1'"),
        cache_key(table, ChatEncoder(tokenizer, tokenizer.chat_template + " "), None),
        cache_key(table, ChatEncoder(other), None),
        cache_key(dataclasses.replace(table, key="row_hash"), ChatEncoder(tokenizer), None),
    ]
    assert len(set(keys)) == 5
    assert keys[0] == cache_key(table, ChatEncoder(make_tokenizer()), None)


def modules_behind(module: str) -> set[str]:
    """The files of training that a module of it imports, itself too, also through each other."""
    folder, seen, todo = Path(training.tokens.__file__).parent, set(), [module]
    while todo:
        name = todo.pop()
        if f"{name}.py" not in seen:
            seen.add(f"{name}.py")
            tree = ast.parse((folder / f"{name}.py").read_text())
            imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
            todo += [path.removeprefix("training.") for path in imported if path.startswith("training.")]
    return seen


def test_the_code_that_makes_a_cache_decides_its_key(
    chats: Lake, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(SOURCES) == modules_behind("tokens")
    for name in SOURCES:
        shutil.copy(Path(training.tokens.__file__).parent / name, tmp_path)
    table, encoder = open_table(chats, "train_sft"), ChatEncoder(tokenizer)
    keys = [cache_key(table, encoder, None)]
    monkeypatch.setattr(training.tokens, "__file__", str(tmp_path / "tokens.py"))
    assert cache_key(table, encoder, None) == keys[0]
    for name in SOURCES:
        (tmp_path / name).write_text((tmp_path / name).read_text() + "\n")
        keys.append(cache_key(table, encoder, None))
    assert len(set(keys)) == 1 + len(SOURCES)


def test_a_predicate_picks_rows_and_can_do_nothing_else(chats: Lake, tokenizer: Any, tmp_path: Path) -> None:
    some = cached(chats, tokenizer, tmp_path / "c", "source = 's1' -- only these")
    expected = chats.sql("select example_id from train_sft where source = 's1' order by 1")["example_id"].to_list()
    assert some.ids(np.arange(len(some))) == expected
    for bad in ("nonsense = 1", "true); copy (select 1) to 'x"):
        with pytest.raises(QueryError):
            cached(chats, tokenizer, tmp_path / "c", bad)


def fill(home: str, root: str) -> None:
    cached(Lake(home), make_tokenizer(), Path(root))


@pytest.mark.integration
def test_four_writers_of_one_cache_and_a_dead_one_leave_one_whole_cache(
    chats: Lake, tokenizer: Any, tmp_path: Path
) -> None:
    root = tmp_path / "c"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=fill, args=(chats.home, str(root))) for _ in range(4)]
    for writer in writers:
        writer.start()
    writers[0].kill()
    for writer in writers:
        writer.join(240)
    assert [w.exitcode for w in writers[1:]] == [0, 0, 0]
    whole = [p for p in root.iterdir() if not p.name.endswith(".draft")]
    assert len(whole) == 1 and len(cached(chats, tokenizer, root)) == 100


def test_a_truncated_cache_is_made_again(chats: Lake, tokenizer: Any, tmp_path: Path) -> None:
    path = cached(chats, tokenizer, tmp_path / "c").path
    whole = (path / "tokens.bin").read_bytes()
    (path / "tokens.bin").write_bytes(whole[:-40])
    assert (cached(chats, tokenizer, tmp_path / "c").path / "tokens.bin").read_bytes() == whole
    masks = (path / "trains.bin").read_bytes()
    (path / "trains.bin").write_bytes(masks[:-10])
    assert (cached(chats, tokenizer, tmp_path / "c").path / "trains.bin").read_bytes() == masks


@pytest.mark.parametrize("world", [1, 2, 4])
@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_of_all_ranks_together_read_the_global_batches(
    chats: Lake, tokenizer: Any, tmp_path: Path, world: int, workers: int
) -> None:
    cache = cached(chats, tokenizer, tmp_path / "c")
    how: dict[str, Any] = {"max_length": None, "seed": 5, "batch_size": 8, "batches": 30, "world": world}
    streams = [LakeStream(cache, rank=rank, **how) for rank in range(world)]
    own = 8 // world
    read = np.concatenate([np.reshape(rows_of(s, workers, own), (30, own)) for s in streams], axis=1)
    assert read.tolist() == [streams[0].rows_of(k) for k in range(30)]
    assert sorted(read.ravel()[:100].tolist()) == list(range(100))


def test_a_stream_goes_on_from_its_position_on_another_world_size(chats: Lake, tokenizer: Any, tmp_path: Path) -> None:
    cache = cached(chats, tokenizer, tmp_path / "c")
    whole = LakeStream(cache, max_length=None, seed=1, batch_size=6, batches=40)
    expected = [whole.rows_of(k) for k in range(40)]
    at = whole.position(rows=17 * 6)
    assert at == Position(1, 2)
    rest = [
        LakeStream(cache, max_length=None, seed=1, batch_size=6, batches=23, start=at, rank=r, world=3)
        for r in range(3)
    ]
    read = np.concatenate([np.reshape(rows_of(s, 0, 2), (23, 2)) for s in rest], axis=1)
    assert read.tolist() == expected[17:]


@pytest.mark.parametrize("workers", [0, 2])
def test_starting_a_second_time_is_an_error(chats: Lake, tokenizer: Any, tmp_path: Path, workers: int) -> None:
    stream = LakeStream(cached(chats, tokenizer, tmp_path / "c"), max_length=None, seed=1, batch_size=4, batches=3)
    assert len(rows_of(stream, workers)) == 12
    with pytest.raises(InternalError, match="second time"):
        rows_of(stream, workers)


def test_over_long_rows_are_left_out_and_named(chats: Lake, tokenizer: Any, tmp_path: Path) -> None:
    cache = cached(chats, tokenizer, tmp_path / "c")
    limit = int(np.median(cache.lengths))
    stream = LakeStream(cache, max_length=limit, seed=1, batch_size=1, batches=1)
    fits = [i for i in range(100) if cache.lengths[i] <= limit]
    assert sorted(stream.order.take(0, len(fits)).tolist()) == fits
    report = preflight(cache, ChatEncoder(tokenizer), limit, tmp_path)
    assert report["dropped_too_long"] == 100 - len(fits) > 0 and report["trains"] == len(fits)
    listed = [line.split(",") for line in (tmp_path / "too_long.csv").read_text().splitlines()[1:]]
    assert [i for i, _ in listed] == stream.too_long and all(int(n) > limit for _, n in listed)
    with pytest.raises(UsageError, match="no row is left"):
        LakeStream(cache, max_length=3, seed=1, batch_size=1, batches=1)


def test_the_first_examples_show_what_trains(chats: Lake, tokenizer: Any, tmp_path: Path) -> None:
    shown = first_examples(cached(chats, tokenizer, tmp_path / "c"), tokenizer, 600)
    assert shown.count("\n---") == 5
    assert "<|im_start|>assistant\n⟦The sum is" in shown and "<|im_end|>⟧\n" in shown


def test_rows_that_no_mask_fits_stop_the_job_and_are_named(home: Path, tokenizer: Any, tmp_path: Path) -> None:
    rows = sft_rows(3)
    rows[1]["messages"] = [{"role": "user", "content": None, "content_parts": '[{"type": "image_url"}]'}]
    lake = publish(home, {"train_sft": rows})
    with pytest.raises(MaskError, match=f"{rows[1]['example_id']} holds parts"):
        cached(lake, tokenizer, tmp_path / "c")
    basic = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + m['content'] + '<|im_end|>' }}{% endfor %}"
    with pytest.raises(MaskError, match="does not render tool schemas, tool calls, arguments"):
        encoder = ChatEncoder(tokenizer, basic)
        token_cache(lake, open_table(lake, "train_sft"), encoder, "tools is not null", tmp_path / "c")
    assert not any((tmp_path / "c").iterdir())
