"""The kernel `chat`: a landed record to its chats, pairs and spans in the common shape.

One pure function per format, in `transforms/chat/formats/`; this module is the table of them and the walk over a
batch. A record that its format's reader does not know is no error: it gives one unit with the problem
`unreadable_shape`, so that it is counted and dropped by name.

Pure Python, bound by the GIL; in a second of one core (tests/bench/bench_chats.py): 2,600 tau-bench runs of 18 kB and
27 turns (48 MB), 29,000 short ShareGPT chats, 5,700 spans, 1,100 Langfuse exports (70 MB).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pyarrow as pa

from lake.errors import InternalError
from transforms.chat.blocks import UnreadableShape, refuse
from transforms.chat.formats import (
    ChatFormat,
    alpaca,
    claude_code,
    fastchat,
    hh,
    kto,
    langfuse,
    openai_chat,
    openai_completion,
    preference,
    prompt_completion,
    self_instruct,
    sharegpt,
    spans,
    tau2_bench,
    tau_bench,
)
from transforms.chat.units import EXAMPLE_COLUMNS, UNIT, UNREADABLE, Unit, unit, unreadable
from transforms.kernel import Kernel

SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # an escaped half of a pair, which may stand alone

# A format's name is its module's in lake/sources; formats that differ in their envelope alone share a reader.
FORMATS: Mapping[str, ChatFormat] = {
    "alpaca": alpaca,
    "anthropic": openai_completion,
    "claude_code": claude_code,
    "fastchat": fastchat,
    "hh": hh,
    "kto": kto,
    "langfuse": langfuse,
    "openai_chat": openai_chat,
    "openai_completion": openai_completion,
    "openinference": spans,
    "otel_genai": spans,
    "preference": preference,
    "prompt_completion": prompt_completion,
    "self_instruct": self_instruct,
    "sharegpt": sharegpt,
    "tau2_bench": tau2_bench,
    "tau_bench": tau_bench,
}


def units_of(payload: str, format_name: str) -> list[Unit]:
    """Read one record.

    Args:
        payload: the record as it landed, JSON text.
        format_name: the format that landing found.

    Returns:
        Its units; at least one, except for records of span formats that are no part of a conversation.

    Raises:
        InternalError: no reader has the format's name.
    """
    reader = FORMATS.get(format_name)
    if reader is None:
        raise InternalError(
            f"transforms.chat.chats has no reader for format {format_name!r}; it has {', '.join(sorted(FORMATS))}. "
            "Add the format's module to FORMATS."
        )
    try:
        record = json.loads(payload, parse_constant=refuse)
        if SURROGATE.search(payload):
            record = _without_lone_surrogates(record)
        return [_usable(u) for u in reader.units(record)] or unreadable()
    except (UnreadableShape, ValueError, RecursionError):
        return unreadable()


def _usable(made: Unit) -> Unit:
    """Return a unit whose lists of messages are not empty; one that says nothing and not why is unreadable."""
    empty = [k for k in ("messages", "chosen", "rejected") if made.get(k) == []]
    made = {**made, **dict.fromkeys(empty)} if empty else made
    says = made.get("problem") or made.get("messages") or made.get("chosen") or made.get("rejected")
    return made if says else unit(None, problem=UNREADABLE)


def _without_lone_surrogates(value: object) -> object:
    """Return a value whose texts are valid Unicode: half of a surrogate pair, which JSON can escape, becomes U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_without_lone_surrogates(v) for v in value]
    if isinstance(value, dict):
        return {str(_without_lone_surrogates(k)): _without_lone_surrogates(v) for k, v in value.items()}
    return value


def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Read a batch of records; row i of the result is row i of the input."""
    payloads, formats = batch.column("payload").to_pylist(), batch.column("format").to_pylist()
    units = [units_of(p, f) for p, f in zip(payloads, formats, strict=True)]
    return pa.record_batch([pa.array(units, type=RESULTS.field("units").type)], schema=RESULTS)


RESULTS = pa.schema([pa.field("units", pa.list_(UNIT))])
CHAT = Kernel(
    name="chat",
    inputs=pa.schema([("payload", pa.string()), ("format", pa.string())]),
    results=RESULTS,
    compute=compute,
    contract_columns={"curated/examples": EXAMPLE_COLUMNS},
)
