"""The rows of a stream, tokenised once: flat files of ids and masks, sorted by row id, opened as memory maps.

Templating and tokenising is by far the slowest part of reading, so it is done once per (table digest, predicate,
tokenizer, template, this code) and kept below the workspace. A cache is written aside and renamed when it is whole: a
kill leaves a `.draft` folder that nobody reads, and of two writers one wins with the same bytes. Five bytes a token.
"""

from __future__ import annotations

import functools
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lake.errors import UsageError
from lake.files import draft_of, place_folder
from lake.identity import H
from lake.query.query import Lake
from lake.sql import identifier
from training.masks import ChatEncoder, MaskError, unrendered
from training.tables import Table

STALE_SECONDS = 24 * 3600
SOURCES = ("formats.py", "masks.py", "tables.py", "tokens.py")


@dataclass(frozen=True)
class TokenCache:
    """Tokenised rows.

    Attributes:
        path: its folder.
        meta: what it holds and what was noticed on the way.
        offsets: int64 of shape (rows + 1,): where each row begins in the flat files.
    """

    path: Path
    meta: Mapping[str, Any]
    offsets: np.ndarray = field(repr=False)

    @functools.cached_property
    def _flat(self) -> tuple[np.ndarray, np.ndarray]:
        tokens = np.memmap(self.path / "tokens.bin", dtype=np.int32, mode="r")
        return tokens, np.memmap(self.path / "trains.bin", dtype=np.bool_, mode="r")

    @functools.cached_property
    def _ids(self) -> pa.ChunkedArray:
        with pa.memory_map(str(self.path / "ids.arrow")) as source:
            return pa.ipc.open_file(source).read_all()["id"]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row."""
        return np.diff(self.offsets)

    def row(self, index: int) -> dict[str, np.ndarray]:
        """Return a row's `input_ids` and `labels` (-100 where a token does not train), int64."""
        tokens, trains = self._flat
        span = slice(self.offsets[index], self.offsets[index + 1])
        ids = tokens[span].astype(np.int64)
        return {"input_ids": ids, "labels": np.where(trains[span], ids, -100)}

    def ids(self, indices: np.ndarray) -> list[str]:
        """Return the row ids of some rows."""
        return list(self._ids.take(pa.array(indices)).to_pylist())

    def __getstate__(self) -> dict[str, Any]:
        """Leave the open maps behind: a loader's worker opens its own."""
        return {"path": self.path, "meta": self.meta, "offsets": self.offsets}


def token_cache(
    lake: Lake,
    table: Table,
    encoder: ChatEncoder,
    where: str | None = None,
    root: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> TokenCache:
    """Open the cache of some rows, tokenising them first if nobody did.

    Args:
        lake: where they lie.
        table: a table of a release.
        encoder: tokenizer and template.
        where: SQL predicate over the table; default all rows.
        root: folder of caches; default beside the workspace.
        progress: called with the number of rows done.

    Raises:
        MaskError: a row for which no right mask exists.
        UsageError: the table has no chats.
        QueryError: the predicate does not run.
    """
    if "messages" not in table.columns:
        raise UsageError(
            f"{table.name} has no column `messages`; expected a table of chats, such as train_sft. It has "
            f"{', '.join(table.columns)}."
        )
    root = root or lake.paths.workspace.parent / "cache" / "tokens"
    path = root / cache_key(table, encoder, where)
    cache = _open(path)
    if cache is None:
        _write(path, lake, table, encoder, where, progress)
        cache = _open(path)
    assert cache is not None, path
    return cache


def cache_key(table: Table, encoder: ChatEncoder, where: str | None) -> str:
    """Return the name of a cache: all that decides its bytes, the code that makes them too (axolotl PR #922).

    Args:
        table: a table of a release.
        encoder: tokenizer and template.
        where: SQL predicate over the table.

    Returns:
        32 hex digits.
    """
    tokenizer = encoder.tokenizer
    code = [(Path(__file__).parent / name).read_bytes() for name in SOURCES]
    versions = [version("tokenizers"), version("transformers")]
    special = json.dumps(tokenizer.special_tokens_map, sort_keys=True, default=str)
    backend = tokenizer.backend_tokenizer.to_str()
    rows = (table.name, table.digest, table.key, where or "")
    return H("tokens", *rows, backend, special, encoder.template, *versions, *code)


def _open(path: Path) -> TokenCache | None:
    try:
        meta = json.loads((path / "meta.json").read_bytes())
        offsets = np.load(path / "offsets.npy")
    except FileNotFoundError:
        return None
    sizes = [(path / name).stat().st_size for name in ("tokens.bin", "trains.bin")]
    if sizes != [4 * offsets[-1], offsets[-1]]:
        shutil.rmtree(path)  # a disk that lost its end; a cache may always be made again
        return None
    return TokenCache(path, meta, offsets)


def _write(
    path: Path,
    lake: Lake,
    table: Table,
    encoder: ChatEncoder,
    where: str | None,
    progress: Callable[[int], None] | None,
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    for abandoned in path.parent.glob(".*.draft"):
        if time.time() - abandoned.stat().st_mtime > STALE_SECONDS:
            shutil.rmtree(abandoned, ignore_errors=True)
    with draft_of(path) as draft:
        draft.mkdir()
        notes = _Notes(encoder)
        ids, offsets = [], [0]
        with (draft / "tokens.bin").open("wb") as tokens, (draft / "trains.bin").open("wb") as trains:
            for row in _rows(lake, table, where):
                encoded = notes.encode(row, row[table.key])
                tokens.write(np.asarray(encoded.input_ids, dtype=np.int32).tobytes())
                trains.write(np.asarray(encoded.trains, dtype=np.bool_).tobytes())
                ids.append(row[table.key])
                offsets.append(offsets[-1] + len(encoded.input_ids))
                if progress:
                    progress(len(ids))
        np.save(draft / "offsets.npy", np.asarray(offsets, dtype=np.int64))
        with pa.OSFile(str(draft / "ids.arrow"), "wb") as sink:
            arrow = pa.table({"id": pa.array(ids, pa.string())})
            with pa.ipc.new_file(sink, arrow.schema) as writer:
                writer.write_table(arrow)
        meta = {"table": table.name, "digest": table.digest, "where": where, "rows": len(ids), **notes.as_json()}
        (draft / "meta.json").write_text(json.dumps(meta, indent=2))
        place_folder(draft, path)  # has the files on the disk first; who was quicker wrote the same bytes


def _rows(lake: Lake, table: Table, where: str | None) -> Iterator[dict[str, Any]]:
    tools = "tools" if "tools" in table.columns else "null::varchar as tools"
    condition = f"where ({where}\n)" if where else ""  # the line break ends a comment in the predicate
    key = identifier(table.key)
    query = f"select {key}, messages, {tools} from {identifier(table.name)} {condition} order by {key}"
    with lake.batches(query, table.release.number) as reader:
        for batch in reader:
            for start in range(0, batch.num_rows, 1024):
                yield from batch.slice(start, 1024).to_pylist()


class _Notes:
    """Encodes rows, and notes what a person should know before training on them.

    Args:
        encoder: tokenizer and template.
    """

    def __init__(self, encoder: ChatEncoder) -> None:
        self.encoder = encoder
        self.counts: Counter[str] = Counter()
        self.control = tuple(t for t in encoder.end_texts if encoder.tokenizer.convert_tokens_to_ids(t) is not None)
        self.swallows: dict[str, list[str]] = {}

    def encode(self, row: Mapping[str, Any], name: str) -> Any:
        """Encode one row and count what it holds."""
        messages, tools = row["messages"] or [], row["tools"]
        calls = [call for turn in messages for call in turn.get("tool_calls") or []]
        if any(turn.get("content_parts") for turn in messages):
            raise MaskError(
                f"{name} holds parts that are no text (images, audio), and this job trains on text. "
                "Leave such rows out with `where:`."
            )
        if (calls or tools) and (missing := self._swallowed("tools")):
            raise MaskError(
                f"{name} uses tools, and the chat template does not render {', '.join(missing)}: the model would train "
                "on turns that are not there. Name a template that does with `chat_template:`."
            )
        if any(turn.get("reasoning") for turn in messages) and self._swallowed("reasoning"):
            self.counts["rows_whose_reasoning_is_not_rendered"] += 1
        if any(not _is_object(call.get("arguments")) for call in calls):
            self.counts["rows_with_arguments_that_are_no_object"] += 1
        if any(text in (turn.get("content") or "") for turn in messages for text in self.control):
            self.counts["rows_with_control_tokens_in_their_text"] += 1
        encoded = self.encoder.encode(messages, tools, name)
        self.counts["tokens"] += len(encoded.input_ids)
        self.counts["trained_tokens"] += sum(encoded.trains)
        return encoded

    def as_json(self) -> dict[str, int]:
        """Return the counts."""
        return dict(sorted(self.counts.items()))

    def _swallowed(self, what: str) -> list[str]:
        if what not in self.swallows:
            self.swallows[what] = unrendered(self.encoder, tools=what == "tools", reasoning=what == "reasoning")
        return self.swallows[what]


def _is_object(arguments: str | None) -> bool:
    try:
        return isinstance(json.loads(arguments or "{}"), dict)
    except ValueError:
        return False
