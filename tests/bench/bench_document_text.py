"""How fast payloads become texts; run by `make bench`, or `python tests/bench/bench_document_text.py`."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path

import pyarrow as pa

from lake.landing.streams import Stream
from lake.sources import warc
from lake.sources.protocol import Row
from transforms.text.document_text import DOCUMENT_TEXT

DATA = Path(os.environ.get("LAKEWRIGHT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "web"


def samples() -> dict[str, list[tuple[bytes, str]]]:
    """Return payloads with their media types, by name."""
    pages = [p.read_bytes() for p in sorted((DATA / "tldr_pages").rglob("*.md"))]
    rows = (DATA / "llamafactory_webtext/data/c4_demo.jsonl").read_bytes().splitlines() * 5
    legacy = [p.read_bytes() for p in sorted((DATA / "udhr/udhr").iterdir())]
    captures = [
        (r.payload, r.content_type or "")
        for file in sorted((DATA / "dolma_testdata/tests/data/warc").iterdir())
        for r in warc.read(Stream(io.BytesIO(file.read_bytes())), file.name)
        if isinstance(r, Row)
    ]
    return {
        "pages of Markdown": [(p, "text/markdown") for p in pages],
        "speeches": [(p.read_bytes(), "text/plain") for p in sorted((DATA / "speeches").rglob("*.txt"))] * 10,
        "rows of C4": [(r, "") for r in rows],
        "one row of 5 MB": [(json.dumps({"text": b"".join(pages).decode()}).encode(), "")],
        "legacy encodings": [(p, "text/plain") for p in legacy],
        "captures of pages": captures,
    }


def main() -> None:
    """Print a table: the best of three runs on one thread, by the time of the processor."""
    for name, rows in samples().items():
        payloads, types = zip(*rows, strict=True)
        batch = pa.record_batch([pa.array(payloads, pa.binary()), pa.array(types)], schema=DOCUMENT_TEXT.inputs)
        seconds = []
        for _ in range(3):
            start = time.process_time()
            DOCUMENT_TEXT.compute(batch)
            seconds.append(time.process_time() - start)
        size = sum(map(len, payloads)) / 1e6
        best = min(seconds)
        print(f"{name:18} {len(rows):5} payloads {1000 * best / len(rows):8.2f} ms each {size / best:7.1f} MB/s")


if __name__ == "__main__":
    main()
