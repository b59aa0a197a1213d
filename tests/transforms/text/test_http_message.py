"""Responses as crawlers store them."""

from __future__ import annotations

import gzip
import zlib

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


def test_a_bomb_ends_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transforms.text.http_message.MAX_BODY", 1000)
    assert len(entity(message(gzip.compress(bytes(100_000)), "Content-Encoding: gzip"))) == 1000


def test_headers_are_read_folded_repeated_and_without_a_body() -> None:
    found = parse(b"HTTP/1.0 302 Found\nContent-Type: text/html;\n charset=koi8-r\nContent-Type: other\nLocation: /x")
    assert found == Response({"content-type": "text/html; charset=koi8-r", "location": "/x"}, b"")


@given(st.binary(max_size=300))
def test_no_bytes_raise(block: bytes) -> None:
    parse(block)
    parse(b"HTTP/1.1 200 OK\r\n" + block)
    for coding in CODINGS:
        entity(message(block, f"Content-Encoding: {coding}", "Transfer-Encoding: chunked"))
