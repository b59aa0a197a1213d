"""Pages to text: one at a time, and no tree of a page outlives its call."""

from __future__ import annotations

import gc
import io
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lxml import etree

from lake.landing.streams import Stream
from lake.sources import warc
from lake.sources.protocol import Row
from transforms.text import html_text, http_message


def pages(data: Path) -> list[str]:
    """Pages of a crawl, and damaged ones made of them."""
    raw = (data / "web/dolma_testdata/tests/data/warc/sample-0000.warc.gz").read_bytes()
    rows = [r for r in warc.read(Stream(io.BytesIO(raw)), "x") if isinstance(r, Row)]
    responses = [http_message.parse(row.payload) for row in rows]
    whole = [r.body.decode("utf-8", "replace").replace("\x00", "") for r in responses if r is not None and r.body]
    assert len(whole) > 20
    return [*whole, *(page[: len(page) // 2] + "<p><b>" * 200 for page in whole[:4]), "", "<html>\x01&#0;<a b='>"]


def test_threads_give_what_one_thread_gives(data: Path) -> None:
    texts = [html_text.extract(page) for page in pages(data)]
    thresholds = gc.get_threshold()
    gc.set_threshold(50, 2, 2)  # so that the collector runs inside of many parses
    try:
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(html_text.extract, pages(data) * 2)) == texts * 2
    finally:
        gc.set_threshold(*thresholds)


@pytest.mark.integration
@pytest.mark.parametrize("call", [html_text.extract, html_text.strip_tags])
def test_no_tree_is_left_to_the_garbage_collector(data: Path, call: Callable[[str], object]) -> None:
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for page in pages(data):
            call(page)
        gc.collect()
        left = [kept for kept in gc.garbage if isinstance(kept, etree._Element | etree._ElementTree)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []


def test_one_page_is_read_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    inside: list[int] = []
    most: list[int] = []

    def slow(*_: object, **__: object) -> None:
        inside.append(threading.get_ident())
        time.sleep(0.01)
        most.append(len(inside))
        inside.pop()

    def fail(*_: object, **__: object) -> None:
        slow()
        raise ValueError("no page")

    monkeypatch.setattr(html_text.trafilatura, "extract", slow)
    monkeypatch.setattr(html_text.html, "fromstring", fail)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(html_text.extract, ["<p>x</p>"] * 20))
        list(pool.map(html_text.strip_tags, ["<p>x</p>"] * 20))
    assert set(most) == {1} and len(most) == 60


def test_many_comments_before_a_page_take_no_longer_than_few() -> None:
    # With nested quantifiers each comment doubled the time: 60 of them took longer than anybody waits.
    assert html_text.OPENS_LIKE_HTML.match(b"<!--a--> " * 200 + b"x") is None
    assert html_text.OPENS_LIKE_HTML.match(b"<!--a--> \n" * 200 + b"<!DOCTYPE  html>")
    assert html_text.OPENS_LIKE_HTML.match(b"<!-- <html> -->x") is None
