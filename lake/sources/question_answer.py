"""Benchmark items as rows: a question under one of the usual names, its answer where there is one.

GSM8K, MMLU, MATH, HumanEval, IFEval, BFCL, AI2 decon's reference files. Where a suite keeps its fields stands in
contracts/reference/benchmarks.csv; the names here are those that count without an entry.
"""

from __future__ import annotations

from lake.record_keys.items import QUESTION_KEYS

NAME = "question_answer"
KINDS = ("benchmark",)
ORDER = 60
KEYS = ("question", "answer", "choices")
ITEMS = (None,)


def lacks(record: object) -> str | None:
    """Say what a record lacks to be an item."""
    if not isinstance(record, dict):
        return "records are not JSON objects"
    if any(isinstance(record.get(key), str | list) for key in QUESTION_KEYS):
        return None
    if isinstance(record.get("messages"), list) and "answer" in record:
        return None
    return f"no question under {', '.join(repr(key) for key in QUESTION_KEYS)}"
