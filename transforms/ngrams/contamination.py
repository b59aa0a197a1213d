"""Kernel `contamination`: the benchmark items that stand in a text.

A suite is the items of one split of a benchmark, named by the hash of what is in it, so that a result holds for as long
as the items are those. A text is read once, whatever the number of suites that it is asked about. An item has two
parts, each with hits of its own: `question` (question and choices, as the example's `text`) and `answer`.

- Word 13-grams (`transforms.ngrams.ngram_index`) count if they hold five words with a letter, four of them different:
  runs of numbers repeat by chance. An answer is looked for by 13-grams only: "18" or "none of the above" says nothing.
- A question of 5 to 12 words is found as a whole sequence anywhere.
- A shorter one, or one without enough words to say something, is found only as a whole text: equal after NFC and
  folding white space.

What a hit means (protected splits, n-grams that everybody writes) is decided in SQL, from these facts.
Cost: see tests/bench/bench_contamination.py; the index is made once a build that has texts to search.
"""

from __future__ import annotations

import pyarrow as pa

from lake.errors import InternalError
from transforms.kernel import Kernel
from transforms.ngrams.contamination_index import MAX_ITEMS, Index, TextHits, build, search

ITEMS = pa.schema(
    [
        pa.field("suite", pa.string(), nullable=False),
        pa.field("item_id", pa.string(), nullable=False),
        pa.field("part", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ]
)
"""What `prepare` takes: one row a part of an item; suite is the hash of the suite's items."""

HIT = pa.struct(
    [
        pa.field("item_id", pa.string()),
        pa.field("part", pa.string()),
        pa.field("match", pa.string()),
        pa.field("num_ngrams", pa.int64()),
        pa.field("matched_ngrams", pa.int64()),
        pa.field("longest_run", pa.int64()),
        pa.field("first_word", pa.int64()),
        pa.field("ngrams", pa.list_(pa.int64())),
    ]
)
"""match: ngrams, sequence or text; longest_run: most n-grams of the item in a row that are in the text; first_word:
where in the text, from 0; ngrams: places, from 1, in the list of the suite."""

FOUND = pa.struct(
    [
        pa.field("suite", pa.string()),
        pa.field("num_items", pa.int64()),
        pa.field("ngrams", pa.list_(pa.string())),
        pa.field("hits", pa.list_(HIT)),
    ]
)
"""num_items: how many items hit, of which the first MAX_ITEMS are listed; ngrams: all of the suite, each once."""

INPUTS = pa.schema(
    [
        pa.field("text_hash", pa.string()),
        pa.field("text", pa.string()),
        pa.field("suites", pa.list_(pa.string())),
    ]
)
RESULTS = pa.schema(
    [
        pa.field("text_hash", pa.string()),
        pa.field("scanned", pa.list_(pa.string())),
        pa.field("found", pa.list_(FOUND)),
    ]
)
"""scanned: the suites that were asked for; one without a hit has no row in found."""


def prepare(items: pa.Table) -> Index:
    """Return the index that `compute` searches.

    Args:
        items: columns of ITEMS, in any order and types of the same values.
    """
    return build(items.select(ITEMS.names).cast(ITEMS))


def compute(batch: pa.RecordBatch, index: Index) -> pa.RecordBatch:
    """Look a batch of texts up in the suites that each row names; row i of the result is row i of the input.

    Args:
        batch: columns of INPUTS.
        index: what `prepare` returned.

    Returns:
        Columns of RESULTS.

    Raises:
        InternalError: a row names a suite that no item has.
    """
    suites = batch.column("suites")
    asked = [set(row) for row in suites.to_pylist()]
    unknown = {suite for row in asked for suite in row} - index.suites
    if unknown:
        raise InternalError(f"asked for suites {sorted(unknown)} that no item has; expected those of the items.")
    hits: list[list[TextHits]] = [[] for _ in asked]
    for row, of_text in search(index, batch.column("text")):
        hits[row] = [suite for suite in of_text if suite["suite"] in asked[row]]
    return pa.RecordBatch.from_arrays(
        [batch.column("text_hash"), suites, pa.array(hits, pa.list_(FOUND))], schema=RESULTS
    )


# The items are in no fingerprint: suites are hashes of their items, and the memo's keys hold them.
CONTAMINATION = Kernel(
    name="contamination",
    inputs=INPUTS,
    results=RESULTS,
    compute=compute,
    prepare=prepare,
    parameters={"max_items": MAX_ITEMS},
)
