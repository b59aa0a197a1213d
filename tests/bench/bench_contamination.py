"""What the contamination kernel costs on one core, beside a plain Python scan of the same texts in the same run.

Run: `python tests/bench/bench_contamination.py` (LAKEWRIGHT_DATA names the folder of real input). The index is GSM8K
and MMLU dev, the texts are English documents and chats, repeated to some tens of megabytes. Time is that of the thread,
so that other work on the machine disturbs it little; memory is the peak of the process.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from transforms.ngrams.contamination import INPUTS, ITEMS, compute, prepare
from transforms.text.words import column, nfc, words

DATA = Path(os.environ.get("LAKEWRIGHT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def items() -> list[dict[str, str]]:
    rows = []
    mmlu = DATA / "eval/decon_bundled/bundled-evals/mmlu_dev-1.jsonl.gz"
    for path in [*sorted((DATA / "eval/gsm8k").glob("t*.jsonl")), mmlu]:
        with gzip.open(path, "rt", encoding="utf-8") if path == mmlu else path.open(encoding="utf-8") as lines:
            for i, line in enumerate(lines):
                row = json.loads(line)
                rows += [
                    {"suite": path.name, "item_id": f"{path.name} {i}", "part": part, "text": row[part]}
                    for part in ("question", "answer")
                ]
    return rows


def texts() -> list[str]:
    found = [p.read_text("utf-8", "replace") for p in sorted((DATA / "web/speeches").rglob("*.txt"))]
    found += [p.read_text("utf-8") for p in sorted((DATA / "web/react_native_docs").rglob("*.md*"))]
    for row in json.loads((DATA / "synthetic/llamafactory_sft_dpo/data/dpo_en_demo.json").read_text("utf-8")):
        found += [turn["value"] for turn in row["conversations"]]
    return found


def timed(call: Callable[[], Any], repeats: int = 3) -> float:
    best = float("inf")
    for _ in range(repeats):
        begin = time.thread_time()
        call()
        best = min(best, time.thread_time() - begin)
    return best


def plain_scan(index: set[tuple[str, ...]], made: list[str]) -> int:
    """The usual way: split, lower, a set of tuples."""
    hits = 0
    for text in made:
        tokens = text.lower().split()
        hits += any(tuple(tokens[i : i + 13]) in index for i in range(len(tokens) - 12))
    return hits


def lines() -> Iterator[tuple[str, float, str]]:
    asked, made = items(), texts()
    size = sum(len(text.encode()) for text in made) / 1e6
    repeats = max(1, int(30 / size))
    table = pa.Table.from_pylist(asked, schema=ITEMS)
    suites = sorted({item["suite"] for item in asked})
    batch = pa.RecordBatch.from_pylist(
        [{"text_hash": "", "text": text, "suites": suites} for text in made * repeats], schema=INPUTS
    )
    begin = time.thread_time()
    index = prepare(table)
    compute(batch.slice(0, 1), index)
    built = time.thread_time() - begin
    yield f"index of {len(asked):,} parts, with numba's cache as it is", built, "s"
    view = column(nfc(batch.column("text")))
    words(view)
    yield "words alone", size * repeats / timed(lambda: words(view)), "MB/s"
    yield f"kernel, {len(suites)} suites", size * repeats / timed(lambda: compute(batch, index)), "MB/s"
    grams: set[tuple[str, ...]] = set()
    for item in asked:
        tokens = item["text"].lower().split()
        grams |= {tuple(tokens[i : i + 13]) for i in range(len(tokens) - 12)}
    yield "plain Python set of tuples", size / timed(lambda: plain_scan(grams, made), 1), "MB/s"
    yield "peak memory of the process", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB"


if __name__ == "__main__":
    for name, value, unit in lines():
        print(f"{name:<60} {value:>10.1f} {unit}", flush=True)
