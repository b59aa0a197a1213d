"""How fast the kernel `chat` reads real traces; run by `make bench`, or `python tests/bench/bench_chats.py`."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa

from transforms.chat.chats import CHAT

DATA = Path(os.environ.get("LAKEWRIGHT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "traces"
VERCEL = "openinference/js/packages/openinference-vercel/test/__fixtures__/v6-spans/all-spans.json"


def samples() -> dict[str, list[str]]:
    """Return payloads per format."""
    runs = json.loads((DATA / "tau_bench/historical_trajectories/gpt-4o-airline.json").read_bytes())
    chats = json.loads((DATA / "fastchat/data/dummy_conversation.json").read_bytes())
    spans = json.loads((DATA / VERCEL).read_bytes())[:8]
    return {
        "tau_bench": [json.dumps(r) for r in runs],
        "sharegpt": [json.dumps(r) for r in chats] * 4,
        "otel_genai": [json.dumps(s) for s in spans] * 100,
        "langfuse": [p.read_text() for p in sorted(DATA.rglob("*.trace.json"))],
    }


def main() -> None:
    """Print a table: the best of three runs on one thread, by the time of the processor."""
    for name, payloads in samples().items():
        batch = pa.record_batch([pa.array(payloads), pa.array([name] * len(payloads))], schema=CHAT.inputs)
        seconds = []
        for _ in range(3):
            start = time.process_time()
            CHAT.compute(batch)
            seconds.append(time.process_time() - start)
        mb = sum(len(p.encode()) for p in payloads) / 1e6
        print(
            f"{name:12} {len(payloads):5} records {len(payloads) / min(seconds):7.0f}/s {mb / min(seconds):5.1f} MB/s"
        )


if __name__ == "__main__":
    main()
