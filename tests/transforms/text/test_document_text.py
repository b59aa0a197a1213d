"""The kernel document_text: payloads to texts."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.landing.streams import Stream
from lake.sources import text, warc
from lake.sources.protocol import Row
from transforms.text.document_text import DOCUMENT_TEXT, Extracted, extract

PAGE = (
    "<!doctype html><html><head><title>On foxes</title><script>var hidden = 1;</script></head><body>"
    "<nav><a href='/'>Home</a> <a href='/about'>About</a></nav><article><h1>On foxes</h1>"
    + "".join(
        f"<p>Paragraph {n} says that the quick brown fox jumps over the lazy dog, and that it does so every day.</p>"
        for n in range(12)
    )
    + "</article><footer>Imprint</footer></body></html>"
)


def batch(rows: list[tuple[bytes, str | None]]) -> pa.RecordBatch:
    payloads, types = zip(*rows, strict=True)
    return pa.record_batch([pa.array(payloads, pa.binary()), pa.array(types, pa.string())], schema=DOCUMENT_TEXT.inputs)


def plain(payload: bytes) -> Extracted:
    return extract(payload, "text/plain")


def http(body: bytes, content_type: str) -> Extracted:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n".encode()
    return extract(head + body, "application/http; msgtype=response")


def test_a_page_gives_its_main_text_without_navigation_and_script() -> None:
    found = extract(PAGE.encode(), "text/html")
    assert found.extractor == "trafilatura"
    assert "Paragraph 11 says that the quick brown fox" in found.text
    assert "hidden" not in found.text and "Imprint" not in found.text


def test_a_page_that_the_extractor_throws_away_keeps_its_visible_text() -> None:
    page = b"<html><title>T</title><style>p{}</style><nav><a href=x>home</a><p>away</nav><!-- no --></html>"
    assert extract(page, "text/html") == Extracted("T\nhome\naway", "utf-8", None, "tags_stripped", None)


def test_no_page_of_the_crawl_samples_is_lost_and_each_says_its_extractor(data: Path) -> None:
    for number, count in (("0000", 22), ("0001", 15)):
        raw = (data / f"web/dolma_testdata/tests/data/warc/sample-{number}.warc.gz").read_bytes()
        pages = [r for r in warc.read(Stream(io.BytesIO(raw)), "x") if isinstance(r, Row)]
        found = [extract(r.payload, r.content_type or "") for r in pages if r.payload.startswith(b"HTTP/")]
        assert len(found) == count
        for page in found:
            assert page.problem is None and page.extractor in ("trafilatura", "tags_stripped")
            assert len(page.text) > 100 and "<div" not in page.text and "\x00" not in page.text


def test_the_whirlwind_page_says_in_html_what_its_wet_record_says(data: Path) -> None:
    texts = []
    for suffix in ("warc", "warc.wet"):
        raw = (data / f"web/cc_whirlwind/whirlwind.{suffix}").read_bytes()
        (row,) = [r for r in warc.read(Stream(io.BytesIO(raw)), "x") if isinstance(r, Row)]
        texts.append(extract(row.payload, row.content_type or "").text)
    page, wet = (set(t.split()) for t in texts)
    assert len(page) > 50 and len(page & wet) > 0.9 * len(page)


@pytest.mark.parametrize(
    ("charset", "meta"),
    [("koi8-r", ""), ("", '<meta charset="windows-1251">'), ("", '<?xml version="1.0" encoding="koi8-r"?>')],
)
def test_the_charset_of_header_meta_or_declaration_is_used(charset: str, meta: str) -> None:
    codec = charset or meta.replace("'", '"').split('"')[-2]
    body = f"{meta}<html><body><p>Съешь же ещё этих булок</p></body></html>".encode(codec)
    found = http(body, f"text/html; charset={charset}" if charset else "text/html")
    assert found.text == "Съешь же ещё этих булок" and found.encoding == codec


def test_each_legacy_file_lands_with_a_type_that_gives_its_text_or_no_text(data: Path) -> None:
    undecodable = 0
    for file in (data / "web/udhr/udhr").iterdir():
        head = file.read_bytes()
        found = extract(head, text.content_type(head, file.name) or "")
        undecodable += found.problem == "undecodable"
        assert (found.problem == "undecodable") == (found.encoding is None) == (found.text == "")
    assert undecodable == 13


def test_the_pages_of_the_docs_lose_nothing_but_carriage_returns(data: Path) -> None:
    with_returns = 0
    for file in (data / "web/react_native_docs/website").rglob("*.md*"):
        raw = file.read_bytes()
        found = extract(raw, "text/markdown")
        with_returns += found.repair == "crlf"
        assert found.text == raw.decode().replace("\r\n", "\n") and found.encoding == "utf-8"
    assert with_returns == 50


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"a\r\nb\rc\n", Extracted("a\nb\nc\n", "utf-8", "crlf")),
        (b"a\x00b" + b"c" * 99, Extracted("ab" + "c" * 99, "utf-8", "nul")),
        ("\ufeffhi".encode(), Extracted("hi", "utf-8", "bom")),
        ("\ufeffa\r\n".encode("utf-16"), Extracted("\ufeffa\n", "utf-16-le", "bom,crlf")),
        (
            "Füße, déjà vu – 日本".encode().decode("latin-1").encode(),
            Extracted("Füße, déjà vu – 日本", "utf-8", "mojibake"),
        ),
        (b"", Extracted()),
        (b"\x89PNG\r\n\x1a\n", Extracted(problem="undecodable")),
        (bytes(range(256)) * 4, Extracted(problem="undecodable")),
    ],
)
def test_repairs_are_made_and_named(payload: bytes, expected: Extracted) -> None:
    assert plain(payload) == expected


@pytest.mark.parametrize(
    "good", ["CAFÉ… NÃO", "Â la carte", "São Paulo é linda", "Î…", "10 µm ± 3 °C", "ÀÁÂÃÄÅ", "SÃO — É «»"]
)
def test_good_text_is_no_mojibake(good: str) -> None:
    assert plain(good.encode()) == Extracted(good, "utf-8")


def test_mojibake_is_undone_as_often_as_it_happened() -> None:
    twice = "naïve – café".encode().decode("cp1252").encode().decode("cp1252", "ignore")
    assert plain(twice.encode()).text == "naïve – café"


def test_a_row_gives_its_text_column_and_a_row_without_one_says_so() -> None:
    assert extract(b'{"id": 1, "text": "a\\r\\nb", "content": "no"}', "") == Extracted("a\nb", "utf-8", "crlf")
    assert extract(b'{"meta": {}, "content": "caf\\u00e9 \\ud800"}', "") == Extracted(
        "café \ufffd", "utf-8", "surrogate"
    )
    assert extract(b'{"id": 1}', "") == Extracted(problem="unreadable_shape")
    assert http(b'{"id": 1}', "application/json") == Extracted('{"id": 1}', "utf-8")


def test_media_types_that_are_no_text_give_none() -> None:
    for kind in ("image/png", "application/pdf", "video/mp4", "application/zip", "font/woff2"):
        assert http(b"anything", kind) == Extracted(problem="undecodable")


def test_a_conversion_is_plain_text_and_a_redirect_is_empty() -> None:
    assert extract(b"ein Text\n", "text/plain") == Extracted("ein Text\n", "utf-8")
    assert extract(b"HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\n", "application/http") == Extracted()


ROWS = st.tuples(
    st.binary(max_size=120) | st.text(st.characters(exclude_categories=("Cs",)), max_size=60).map(str.encode),
    st.none()
    | st.sampled_from(["text/plain", "text/html", "application/http", "application/json", "text/xml; charset=x"]),
)


@given(st.lists(ROWS, min_size=1, max_size=8), st.integers(0, 2**32))
def test_results_do_not_depend_on_order_or_batch_and_the_same_input_gives_the_same(
    rows: list[tuple[bytes, str | None]], seed: int
) -> None:
    whole = DOCUMENT_TEXT.compute(batch(rows)).to_pylist()
    assert [DOCUMENT_TEXT.compute(batch([row])).to_pylist()[0] for row in rows] == whole
    order = random.Random(seed).sample(range(len(rows)), len(rows))
    assert DOCUMENT_TEXT.compute(batch([rows[i] for i in order])).to_pylist() == [whole[i] for i in order]


@given(
    st.binary(max_size=300),
    st.text(max_size=40) | st.sampled_from(["text/html", "application/http", "text/plain; name=x-Agra"]),
)
def test_no_payload_and_no_type_raise_and_no_text_holds_nul_or_return(payload: bytes, content_type: str) -> None:
    found = extract(payload, content_type)
    assert "\x00" not in found.text and "\r" not in found.text
    found.text.encode()
    assert found.problem in (None, "undecodable", "unreadable_shape")


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=200))
def test_utf8_text_comes_back_as_it_was(words: str) -> None:
    found = plain(words.encode())
    if found.repair is None and "~{" not in words and not words.startswith("<"):
        assert found == Extracted(words, "utf-8")


def test_running_it_on_its_own_text_changes_nothing(data: Path) -> None:
    for file in [*(data / "web/udhr").rglob("*"), *(data / "web/speeches").rglob("*.txt")]:
        if file.is_file():
            once = extract(file.read_bytes(), "text/plain").text
            assert extract(once.encode(), "text/plain").text == once
