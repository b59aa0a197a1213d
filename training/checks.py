"""What is looked at before the first step, written where a person can look too.

That no row trains on user tokens, that every trained turn ends in an end-of-turn token and that no mask is empty is
decided row by row when rows are tokenised (`training.masks`, `training.tokens`); a row that fails stops the job. What
is left here is to leave over-long rows out by name, since a trainer would cut their end-of-turn token, and to show the
first examples with what trains in them.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from lake.files import write_json, write_whole
from training.masks import ChatEncoder
from training.tokens import TokenCache

SHOWN = 5
OPEN, CLOSE = "⟦", "⟧"


def preflight(cache: TokenCache, encoder: ChatEncoder, max_length: int, folder: Path) -> dict[str, Any]:
    """Write what is known before the first step.

    Args:
        cache: the tokenised rows.
        encoder: that made them.
        max_length: rows of more tokens do not train.
        folder: gets preflight.json, too_long.csv, chat_template.jinja and first_examples.txt.

    Returns:
        The content of preflight.json.
    """
    lengths = cache.lengths
    long = np.flatnonzero(lengths > max_length)
    too_long = io.StringIO()
    writer = csv.writer(too_long)
    writer.writerow(["example_id", "tokens"])
    writer.writerows(zip(cache.ids(long), lengths[long].tolist(), strict=True))
    write_whole(folder / "too_long.csv", too_long.getvalue().encode())
    report = {
        **cache.meta,
        "mask": "the template's generation markers" if encoder.marked else "prefixes, proven for each row",
        "max_length": max_length,
        "dropped_too_long": len(long),
        "trains": len(cache) - len(long),
        "longest": int(lengths.max(initial=0)),
        "median_tokens": int(np.median(lengths)) if len(lengths) else 0,
    }
    write_json(folder / "preflight.json", report)
    write_whole(folder / "chat_template.jinja", encoder.template.encode())
    write_whole(folder / "first_examples.txt", first_examples(cache, encoder.tokenizer, max_length).encode())
    return report


def first_examples(cache: TokenCache, tokenizer: Any, max_length: int) -> str:
    """Return the first rows as text, what trains in brackets.

    Args:
        cache: the tokenised rows.
        tokenizer: that made them.
        max_length: rows of more tokens are left out.
    """
    parts = [f"What trains stands in {OPEN}...{CLOSE}; the rest is context.\n"]
    for index in np.flatnonzero(cache.lengths <= max_length)[:SHOWN]:
        row = cache.row(int(index))
        (name,) = cache.ids(np.asarray([index]))
        trained = int((row["labels"] != -100).sum())
        parts.append(f"--- {name}: {len(row['labels'])} tokens, {trained} train\n{_marked_text(tokenizer, **row)}\n")
    return "\n".join(parts)


def _marked_text(tokenizer: Any, input_ids: np.ndarray, labels: np.ndarray) -> str:
    """Decode a row with its trained runs in brackets."""
    trains = labels != -100
    edges = np.flatnonzero(np.r_[True, trains[1:] != trains[:-1]])
    parts = []
    for start, stop in zip(edges, [*edges[1:], len(labels)], strict=True):
        text = tokenizer.decode(input_ids[start:stop], clean_up_tokenization_spaces=False)
        parts.append(f"{OPEN}{text}{CLOSE}" if trains[start] else text)
    return "".join(parts)
