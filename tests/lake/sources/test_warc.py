"""WARC and ARC, whole and broken."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from lake.landing.streams import Stream
from lake.sources import warc
from lake.sources.protocol import Bad, Row, Skip
from tests.effort import examples

Read = list[Row | Bad | Skip]


def read(data: bytes) -> Read:
    return list(warc.read(Stream(io.BytesIO(data)), "x.warc"))


def rows(read_: Read) -> list[Row]:
    return [r for r in read_ if isinstance(r, Row)]


def bads(read_: Read) -> list[Bad]:
    return [r for r in read_ if isinstance(r, Bad)]


def by_warcio(data: bytes) -> tuple[list[tuple[str | None, bytes]], Counter[str]]:
    """What warcio reads: the captures that land, with their blocks, and the others by type."""
    landed, others = [], Counter[str]()
    for record in ArchiveIterator(io.BytesIO(data), no_record_parse=True):
        if record.rec_type in warc.LANDS:
            landed.append((record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read()))
        else:
            others[record.rec_type] += 1
    return landed, others


def written(*types: str, size: int = 40) -> bytes:
    """A valid file of records of these types, by warcio's writer."""
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=False)
    for number, kind in enumerate(types):
        body = io.BytesIO(f"body {number} ".encode() * (size // 7))
        lines = {
            "response": ("200 OK", "HTTP/1.0"),
            "request": ("GET / HTTP/1.0", "GET"),
            "revisit": ("200 OK", "HTTP/1.0"),
        }
        line = lines.get(kind)
        http = StatusAndHeaders(line[0], [("Content-Type", "text/plain")], protocol=line[1]) if line else None
        writer.write_record(writer.create_warc_record(f"http://x/{number}", kind, payload=body, http_headers=http))
    return out.getvalue()


WHOLE = [
    "cc_whirlwind/whirlwind.warc",
    "cc_whirlwind/whirlwind.warc.gz",
    "cc_whirlwind/whirlwind.warc.wet",
    "cc_whirlwind/whirlwind.warc.wet.gz",
    "cc_whirlwind/whirlwind.warc.wat",
    "cc_whirlwind/whirlwind.warc.wat.gz",
    "dolma_testdata/tests/data/warc/sample-0000.warc.gz",
    "dolma_testdata/tests/data/warc/sample-0001.warc.gz",
    "warcio_testdata/test/data/example.warc",
    "warcio_testdata/test/data/example.warc.gz",
    "warcio_testdata/test/data/example-digest.warc",
    "warcio_testdata/test/data/example-iana.org-chunked.warc",
    "warcio_testdata/test/data/example-resource.warc.gz",
    "warcio_testdata/test/data/example-space-in-target-uri.warc.gz",
    "warcio_testdata/test/data/post-test.warc.gz",
]


@pytest.mark.parametrize("name", WHOLE)
def test_records_equal_those_of_warcio(data: Path, name: str) -> None:
    raw = (data / "web" / name).read_bytes()
    found = read(raw)
    landed, others = by_warcio(raw)
    assert [(r.natural_key, r.payload) for r in rows(found)] == landed
    assert Counter(r.type for r in found if isinstance(r, Skip)) == others
    assert not bads(found)


@pytest.mark.parametrize(("name", "responses"), [("sample-0000", 22), ("sample-0001", 15)])
def test_the_crawl_samples_hold_the_responses_that_their_source_counted(data: Path, name: str, responses: int) -> None:
    found = read((data / f"web/dolma_testdata/tests/data/warc/{name}.warc.gz").read_bytes())
    assert sum(r.payload.startswith(b"HTTP/") for r in rows(found)) == responses


@pytest.mark.parametrize("name", ["whirlwind.warc", "whirlwind.warc.wet"])
def test_plain_and_gzip_twins_hold_the_same_capture(data: Path, name: str) -> None:
    plain, packed = (read((data / f"web/cc_whirlwind/{name}{suffix}").read_bytes()) for suffix in ("", ".gz"))
    assert [(r.natural_key, r.payload) for r in rows(plain)] == [(r.natural_key, r.payload) for r in rows(packed)]
    assert len(rows(plain)) == 1


# Of the broken files: URLs and lengths that land, beginnings of the reasons of what does not; read off by hand.
BROKEN = {
    "bad.arc": (
        [("http://example.com/", 1)],
        ["the record's length is '-1'", "the record's length is '-1'", "the record's length is 'abc'"],
    ),
    "example-bad-non-chunked.warc.gz": ([("http://example.com/", 975)], []),
    "example-bad.warc.gz.bad": (
        [("http://example.com?example=1", 1610), ("http://www.iana.org/domains/example", 471)],
        [],
    ),
    "example-space-in-url.arc": ([], ["cut short: 1579 of 1591 bytes"]),
    "example-trunc.warc": ([("http://example.com/", 973)], ["no record starts here"]),
    "example-wget-bad-target-uri.warc.gz": (
        [
            ("http://example.com/", 1598),
            ("metadata://gnu.org/software/wget/warc/wget_arguments.txt", 49),
            ("metadata://gnu.org/software/wget/warc/wget.log", 471),
        ],
        [],
    ),
    "example-wrong-chunks.warc.gz": ([("http://example.com/", 1613)], []),
    "example.arc": ([("http://example.com/", 1591)], []),
    "example.arc.gz": ([("http://example.com/", 1591)], []),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_give_what_is_readable_and_a_reject_for_the_rest(data: Path, name: str) -> None:
    found = read((data / "web/warcio_testdata/test/data" / name).read_bytes())
    expected_rows, reasons = BROKEN[name]
    assert [(r.natural_key, len(r.payload)) for r in rows(found)] == expected_rows
    assert [b.reason[: len(r)] for b, r in zip(bads(found), reasons, strict=True)] == reasons


def test_a_capture_keeps_its_time_type_and_place() -> None:
    data = written("warcinfo", "response")
    (row,) = rows(read(data))
    assert row.content_type == "application/http; msgtype=response"
    assert data[row.position :].startswith(b"WARC/1.0\r\n")
    assert row.payload == data[data.index(b"HTTP/1.0 200 OK") : -4]
    assert row.observed_at is not None and row.observed_at.tzinfo is not None


def test_every_type_but_three_is_skipped_by_name() -> None:
    types = ["warcinfo", "response", "resource", "conversion", "request", "metadata", "revisit"]
    found = read(written(*types))
    assert [r.type if isinstance(r, Skip) else "row" for r in found] == [
        "warcinfo", "row", "row", "row", "request", "metadata", "revisit",
    ]  # fmt: skip


def test_a_file_cut_anywhere_keeps_each_record_before_the_cut() -> None:
    data = written("response", "request", "response", "conversion")
    starts = [r.position for r in rows(read(data))]
    whole = rows(read(data))
    for cut in range(len(data)):
        found = read(data[:cut])
        ends = [
            start + data[start:].index(row.payload) + len(row.payload) for start, row in zip(starts, whole, strict=True)
        ]
        assert rows(found) == [row for row, end in zip(whole, ends, strict=True) if end <= cut]


def test_garbage_between_records_is_one_reject_and_the_next_record_lands() -> None:
    first, second = written("response"), written("resource")
    found = read(first + b"what is this\nno record\n" + second)
    assert [type(r) for r in found] == [Row, Bad, Row]
    assert bads(found)[0].payload == b"what is this\nno record\n"
    assert bads(found)[0].position == len(first)


def test_a_length_that_runs_over_the_next_record_does_not_swallow_it() -> None:
    data = written("response", "resource")
    length = data.split(b"Content-Length: ")[1].split(b"\r\n")[0]
    found = read(data.replace(b"Content-Length: " + length, b"Content-Length: " + b"99999", 1))
    assert [type(r) for r in found] == [Bad, Row]
    assert rows(found)[0].natural_key == "http://x/1"


def test_a_record_above_the_bound_is_a_reject_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc, "MAX_RECORD", 1000)
    found = read(written("response") + written("response", size=5000) + written("response"))
    assert [type(r) for r in found] == [Row, Bad, Row]
    assert bads(found)[0].size is not None and bads(found)[0].size > 5000


@pytest.mark.parametrize("kind", ["response", "warcinfo"])
def test_a_length_that_is_garbage_does_not_swallow_the_rest_of_the_file(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = written(kind, "response", "resource")
    length = data.split(b"Content-Length: ")[1].split(b"\r\n")[0]
    data = data.replace(b"Content-Length: " + length, b"Content-Length: 999999999999", 1)
    for piece in (1 << 20, 100, 70):  # the next record's opening lies inside a piece and across two
        monkeypatch.setattr(warc, "PIECE", piece)
        found = read(data)
        assert [type(r) for r in found] == [Bad, Row, Row]
        assert "runs over the next record" in bads(found)[0].reason
        assert [data[r.position :][:5] for r in found if not isinstance(r, Skip)] == [b"WARC/"] * 3


def test_a_long_record_of_a_type_that_does_not_land_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc, "MAX_RECORD", 1000)
    found = read(written("metadata", size=5000) + written("response"))
    assert [type(r) for r in found] == [Skip, Row]


PIECES = [
    b"WARC/1.0\r\n",
    b"WARC-Type: response\r\n",
    b"Content-Length: 5\r\n",
    b"\r\n",
    b"hello",
    b"\r\n\r\n",
    b"http://x/ 1.1.1.1 20140101000000 text/html 4\n",
    b"WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n",
]


@settings(max_examples=examples(300))
@given(st.lists(st.binary(max_size=60) | st.sampled_from(PIECES), max_size=12))
def test_no_bytes_break_the_reader_and_none_vanish(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    found = list(warc.read(io.BufferedReader(io.BytesIO(data)), "x.warc"))  # type: ignore[arg-type]
    # A row's or reject's bytes stand in the file, one behind the other.
    at = 0
    for item in found:
        if not isinstance(item, Skip):
            at = data.index(item.payload, max(at, item.position)) + len(item.payload)
    if data.strip(b"\r\n"):
        assert found


def test_the_first_line_tells_a_capture_from_other_text() -> None:
    assert warc.sniff(b"WARC/1.0\r\nWARC-Type: warcinfo\r\n", "x") is None
    assert warc.sniff(b"filedesc://x.arc 0.0.0.0 20140101000000 text/plain 75\n", "x") is None
    assert warc.sniff(b"WARC files are described in ISO 28500", "x.warc") is not None
