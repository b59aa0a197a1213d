"""Main text of a page: trafilatura, and where it finds none the page with its tags stripped.

Boilerplate removal throws whole pages away (link lists, forms, pages of two sentences). A page is never lost to it: the
second extractor keeps all visible text, and which one spoke is recorded. Cost: about 18 ms a page of 42 kB on a core,
all of it trafilatura's (tests/bench/bench_document_text.py). Pages are read one at a time, whatever the number of
threads: trees of lxml that were freed on one thread while another parsed have corrupted the heap. It costs next to
nothing, for trafilatura is Python, which runs on one thread at a time anyway.
"""

from __future__ import annotations

import logging
import re
import threading

import trafilatura
from lxml import etree, html

logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it warns of each page without text; the result says it

_TREES = threading.Lock()
META_CHARSET = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.\-]{2,40})", re.IGNORECASE)
XML_ENCODING = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_:.\-]{2,40})")
# Atomic and possessive: else each comment doubles the ways to read those before it, and the time.
OPENS_LIKE_HTML = re.compile(
    rb"^\s*(?:<!--(?>.*?-->)\s*)*+<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
# Not `head`: libxml2 leaves tags that it does not know, such as nav, inside it where a page opens no body.
INVISIBLE = ("script", "style", "noscript", "template", "title", "svg", "iframe", "object")
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figcaption", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "option", "p",
    "pre", "section", "table", "td", "th", "tr", "ul", "title", "item", "entry", "description", "summary",
})  # fmt: skip


def declared_charsets(data: bytes) -> tuple[str, ...]:
    """Return the charsets that a page names for itself in its first 4,096 bytes (WHATWG HTML, prescan)."""
    head = data[:4096]
    labels = [m[1].decode("ascii") for m in (XML_ENCODING.search(head), META_CHARSET.search(head)) if m]
    # A page that could be read to find the label is not in UTF-16, whatever the label says.
    return tuple("utf-8" if label.lower().startswith("utf-16") else label for label in labels)


def extract(page: str) -> tuple[str, str]:
    """Take the text from a page.

    Args:
        page: markup, decoded.

    Returns:
        The text and the extractor that found it: `trafilatura` or `tags_stripped`.
    """
    with _TREES:
        text = _main_text(page)
    return (text, "trafilatura") if text else (strip_tags(page), "tags_stripped")


def strip_tags(page: str) -> str:
    """Return all visible text, blocks on lines of their own."""
    with _TREES:
        return _visible_text(page)


# Both are functions of their own, so that their trees and tracebacks are gone before the lock is.
def _main_text(page: str) -> str | None:
    try:
        text = trafilatura.extract(page, include_comments=False, include_tables=True, deduplicate=False)
    except (etree.LxmlError, ValueError, TypeError, AttributeError, IndexError, RecursionError, AssertionError):
        return None  # the fallback takes the page; the extractor recorded says so
    return text if text and text.strip() else None


def _visible_text(page: str) -> str:
    try:
        root = html.fromstring(page.encode("utf-8", "replace"), parser=html.HTMLParser(encoding="utf-8"))
    except (etree.LxmlError, ValueError, TypeError, AssertionError):
        return _tidy(re.sub(r"<[^<>]*>", " ", re.sub(r"(?is)<(script|style)\b.*?</\1\s*>|<!--.*?-->", " ", page)))
    title = root.findtext(".//title") or ""
    etree.strip_elements(root, etree.Comment, etree.ProcessingInstruction, *INVISIBLE, with_tail=False)
    for element in root.iter():
        if element.tag in BLOCKS:
            element.text = "\n" + (element.text or "")
            element.tail = "\n" + (element.tail or "")
    return _tidy("\n".join([title, "".join(root.itertext())]))


def _tidy(text: str) -> str:
    """Fold spaces inside lines and drop empty ones."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)
