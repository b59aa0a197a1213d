"""HTML pages, one file each."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

NAME = "html"
KINDS = ("web",)
ORDER = 80

SUFFIXES = (".html", ".htm", ".xhtml", ".xht", ".shtml")
PAGE_START = re.compile(
    rb"^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)


def sniff(head: bytes, path: str) -> str | None:
    """Say what a file lacks to be a page: the suffix, or markup at its beginning.

    Arguments as for `DocumentFormat.sniff`.
    """
    if PurePosixPath(path).suffix.lower() in SUFFIXES:
        return None if head.strip() else "the file is empty"
    return (
        None
        if PAGE_START.match(head.replace(b"\x00", b""))
        else "no suffix .html, and no <!doctype html> or <html> opens it"
    )


def content_type(head: bytes, path: str) -> str | None:
    """Return the media type.

    Arguments as for `DocumentFormat.sniff`.
    """
    return "application/xhtml+xml" if PurePosixPath(path).suffix.lower() in (".xhtml", ".xht") else "text/html"
