"""Responses as crawlers store them."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from transforms.text.http_message import Response, parse

BODY = b"<p>the quick brown fox</p>" * 40
CODINGS = {
    "gzip": gzip.compress(BODY),
    "x-gzip": gzip.compress(BODY[:100]) + gzip.compress(BODY[100:]),
    "deflate": zlib.compress(BODY),
    "Deflate": zlib.compress(BODY)[2:-4],
    "br": brotli.compress(BODY),
    "zstd": zstandard.compress(BODY),
    "identity": BODY,
}


def message(body: bytes, *lines: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode() + body


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


def entity(block: bytes) -> bytes:
    found = parse(block)
    assert found is not None
    return found.body


@pytest.mark.parametrize("coding", CODINGS)
def test_each_content_coding_is_undone(coding: str) -> None:
    assert entity(message(CODINGS[coding], f"Content-Encoding: {coding}")) == BODY


@given(st.binary(max_size=300), st.integers(1, 50))
def test_chunks_are_joined_whatever_their_size(body: bytes, size: int) -> None:
    assert entity(message(chunked(body, size), "Transfer-Encoding: chunked")) == body


def test_trailers_and_extensions_of_chunks_are_no_part_of_the_body() -> None:
    block = message(b"3;a=b\r\nabc\r\n0\r\nExpires: never\r\n\r\n", "Transfer-Encoding: chunked")
    assert entity(block) == b"abc"


def test_codings_are_undone_in_the_order_they_were_made() -> None:
    body = chunked(gzip.compress(zlib.compress(BODY)), 33)
    assert entity(message(body, "Content-Encoding: deflate, gzip", "Transfer-Encoding: chunked")) == BODY


@pytest.mark.parametrize("lie", ["Transfer-Encoding: chunked", "Content-Encoding: gzip", "Content-Encoding: br"])
def test_a_body_that_is_not_in_its_coding_stays_as_it_is(lie: str) -> None:
    assert entity(message(BODY, lie)) == BODY


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_cut_stream_gives_its_beginning(coding: str) -> None:
    noise = bytes((i * 7919 >> 3) & 255 for i in range(20_000))
    packed = {"gzip": gzip.compress(noise), "deflate": zlib.compress(noise)}[coding]
    found = entity(message(packed[: len(packed) // 2], f"Content-Encoding: {coding}"))
    assert len(found) > 1000 and noise.startswith(found)


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, brotli.compress, zstandard.compress])
def test_a_body_above_the_bound_gives_its_beginning(
    pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    coding = {"gzip": "gzip", "zlib": "deflate", "brotli": "br"}.get(pack.__module__, "zstd")
    monkeypatch.setattr("transforms.text.http_message.MAX_BODY", 150_001)
    noise = random.Random(5).randbytes(40_000) * 5
    for body in (noise, bytes(1_000_000)):
        assert entity(message(pack(body), f"Content-Encoding: {coding}")) == body[:150_001]


BOMB = """
import resource, sys, brotli, zstandard
coding = sys.argv[1]
makers = {
    "br": lambda: brotli.Compressor(quality=3),
    "zstd": lambda: zstandard.ZstdCompressor().compressobj(),
}
maker = makers[coding]()
add, end = getattr(maker, "process", None) or maker.compress, getattr(maker, "finish", None) or maker.flush
bomb = b"".join([add(bytes(1 << 24)) for _ in range(64)] + [end()])
from transforms.text.http_message import MAX_BODY, parse
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
body = parse(b"HTTP/1.1 200 OK\\r\\nContent-Encoding: " + coding.encode() + b"\\r\\n\\r\\n" + bomb).body
assert body == bytes(MAX_BODY), len(body)
print(len(bomb), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used) >> 10)
"""


@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_a_bomb_of_a_gibibyte_is_never_held_whole(coding: str) -> None:
    ran = subprocess.run([sys.executable, "-c", BOMB, coding], capture_output=True, text=True, check=True)
    bomb_bytes, grown_mib = map(int, ran.stdout.split())
    assert bomb_bytes < 1 << 20
    assert grown_mib < 512  # the bound of 128 MiB, its pieces beside it, and what the comparison takes


@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_a_cut_stream_that_unpacks_to_much_gives_its_beginning(coding: str) -> None:
    body = random.Random(7).randbytes(3_000) * 200
    packed = brotli.compress(body) if coding == "br" else zstandard.compress(body)
    for cut in (len(packed) - 1, len(packed) - 8):
        found = entity(message(packed[:cut], f"Content-Encoding: {coding}"))
        assert body.startswith(found) and (coding == "zstd" or found)


def test_what_follows_the_end_of_a_stream_is_no_part_of_the_body() -> None:
    for packed, coding in ((CODINGS["zstd"], "zstd"), (brotli.compress(random.Random(3).randbytes(9000)), "br")):
        (alone, longer) = (
            entity(message(packed + tail, f"Content-Encoding: {coding}")) for tail in (b"", b"tail of another kind")
        )
        assert alone.startswith(longer) and longer


def test_headers_are_read_folded_repeated_and_without_a_body() -> None:
    found = parse(b"HTTP/1.0 302 Found\nContent-Type: text/html;\n charset=koi8-r\nContent-Type: other\nLocation: /x")
    assert found == Response({"content-type": "text/html; charset=koi8-r", "location": "/x"}, b"")


@given(st.binary(max_size=300))
def test_no_bytes_raise(block: bytes) -> None:
    parse(block)
    parse(b"HTTP/1.1 200 OK\r\n" + block)
    for coding in CODINGS:
        entity(message(block, f"Content-Encoding: {coding}", "Transfer-Encoding: chunked"))
