"""Bytes to text: which codec, and what had to be mended.

In order: a byte-order mark; the escape sequences of ISO-2022-JP, ISO-2022-KR and HZ; UTF-16 by its zero bytes; strict
UTF-8; the charset that somebody declared, if it decodes without a control character; UTF-8 with a few broken bytes;
chardet's bigram statistics. Statistics always answer something, so their answer must look like text: letters of
other alphabets that turn upper case inside a word, symbols, digits or question marks inside words are what a font
encoding gives, and such bytes are undecodable. On the 52 legacy files of the Universal Declaration that NLTK ships
this finds the codec of all 39 that have one, by the bytes alone. Font encodings that are ASCII (Agra, VG2Main) no
statistics can tell from text; those are told by the file's name, which is the only place that says it.

Cost: 200 to 350 MB/s for UTF-8, about 7 ms for a legacy document of 10 kB (tests/bench/bench_document_text.py).
"""

from __future__ import annotations

import codecs
import itertools
import re
import unicodedata
from dataclasses import dataclass

import chardet

from lake.record_keys.documents import has_control_bytes, utf16_codec

# WHATWG "Encoding", 2024: what a label means on the web, where it differs from Python's codec of that name.
LABELS = {
    "ascii": "windows-1252",
    "us-ascii": "windows-1252",
    "iso-8859-1": "windows-1252",
    "iso8859-1": "windows-1252",
    "latin1": "windows-1252",
    "latin-1": "windows-1252",
    "iso-8859-9": "windows-1254",
    "latin5": "windows-1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "ks_c_5601-1987": "cp949",
    "euc-kr": "cp949",
    "tis-620": "cp874",
    "windows-874": "cp874",
    "iso-8859-8-i": "iso8859-8",
    "x-mac-cyrillic": "mac_cyrillic",
    "macintosh": "mac_roman",
    "big5": "big5hkscs",
    "utf8": "utf-8",
    "unicode": "utf-16",
}

# Python's codecs that are no encoding of documents.
NON_TEXT_CODECS = ("idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem")

# Encodings of a font's glyphs: no codec exists, and a text in one is often pure ASCII.
FONTS = (
    "afenegus6..60375",
    "agra",
    "az.times.cyr.normal0117",
    "az.times.lat0117",
    "cyrillic+abkh",
    "dallakhelv",
    "navaho-font",
    "vg2main",
    "winresearcher",
)

BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# T.61 (CCITT, 1988), the part that matters: a diacritic stands before its letter.
T61 = dict(
    zip(
        range(0xC1, 0xD0),
        "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u0308\u030a\u0327\u0332\u030b\u0328\u030c",
        strict=True,
    )
)
T61_MARKED = re.compile(rb"([\xc1-\xcf])([A-Za-z])")

CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f]")
ERAS = chardet.EncodingEra.ALL & ~chardet.EncodingEra.MAINFRAME  # EBCDIC is no encoding of documents
LOW_CONFIDENCE = 0.2
MOSTLY_ASCII = 0.01


@dataclass(frozen=True)
class Decoded:
    """A text and how it was got: `encoding` None means undecodable; `repairs` in the order they were made."""

    text: str
    encoding: str | None
    repairs: tuple[str, ...] = ()


UNDECODABLE = Decoded("", None)


def decode(data: bytes, declared: tuple[str, ...] = (), name: str = "") -> Decoded:
    """Find the codec of some bytes and decode them.

    Args:
        data: the document without any transfer or content encoding.
        declared: charset labels that somebody declared, the most trusted first.
        name: the file's name where nothing else says more; only a font encoding is read from it (`Bhojpuri-Agra`).

    Returns:
        The text as the codec gives it, with the byte-order mark gone. Never raises.

    >>> decode("Füße".encode("utf-16"))
    Decoded(text='Füße', encoding='utf-16-le', repairs=('bom',))
    """
    if name.lower().endswith(tuple(f"-{font}" for font in FONTS)):
        return UNDECODABLE
    by_mark = next(((codec, data[len(bom) :]) for bom, codec in BOMS if data.startswith(bom)), None)
    if by_mark:
        decoded = _decode_strictly(by_mark[1], by_mark[0]) or _decode_loosely(by_mark[1], by_mark[0])
        if decoded:
            return Decoded(decoded.text, decoded.encoding, ("bom", *decoded.repairs))
    return _decode_escaped(data) or _decode_utf16(data) or _decode_unmarked(data, declared)


def _decode_unmarked(data: bytes, declared: tuple[str, ...]) -> Decoded:
    """Decode bytes that carry no mark of their own: UTF-8, what was declared, statistics."""
    if has_control_bytes(data):
        return UNDECODABLE
    if decoded := _decode_strictly(data, "utf-8"):
        return decoded
    codecs_declared = [codec for label in declared if (codec := _codec_of(label))]
    for codec in codecs_declared:
        # A label of the wrong 8-bit codec mostly decodes; the control characters it gives tell.
        if (decoded := _decode_strictly(data, codec)) and not CONTROL.search(decoded.text):
            return decoded
    if decoded := _decode_loosely(data, "utf-8"):
        return decoded
    if decoded := _decode_by_statistics(data):
        return decoded
    return next((decoded for codec in codecs_declared if (decoded := _decode_loosely(data, codec))), UNDECODABLE)


def _codec_of(label: str) -> str | None:
    """Return the codec that a charset label means, or None if there is none that decodes bytes to text."""
    label = label.strip().strip("\"'").lower()
    codec = LABELS.get(label, label)
    if codec.replace("-", "_") in NON_TEXT_CODECS:
        return None
    try:
        b"ab".decode(codec, "replace")
    except (LookupError, UnicodeError, ValueError):
        return None
    return codec


def _decode_strictly(data: bytes, codec: str) -> Decoded | None:
    """Decode without an error, or with one at the very end, where a file was cut inside a character."""
    try:
        return Decoded(data.decode(codec), codec)
    except UnicodeDecodeError as error:
        if error.start < len(data) - 4 or error.start == 0 or len(data) < 16:
            return None
    except (UnicodeError, ValueError):
        return None
    # A character takes at most four bytes in any of the codecs.
    for cut in range(1, 5):
        try:
            return Decoded(data[:-cut].decode(codec), codec, ("truncated",))
        except UnicodeError:
            continue
    return None


def _decode_loosely(data: bytes, codec: str) -> Decoded | None:
    """Decode with replacement characters, if they are few beside the characters that decode."""
    try:
        text = data.decode(codec, "replace")
    except (UnicodeError, ValueError):
        return None
    broken = text.count("\ufffd")
    good = sum(1 for c in text if c > "\x7f") - broken
    if not broken or good < 10 * broken:
        return None
    return Decoded(text, codec, ("replaced",))


def _decode_escaped(data: bytes) -> Decoded | None:
    """Decode the seven-bit encodings that announce themselves by escape sequences."""
    if not data.isascii():
        return None
    if b"\x1b$" in data or b"\x1b(" in data:
        for codec in ("iso-2022-jp", "iso-2022-kr", "iso2022_jp_2", "iso2022_jp_3"):
            if (decoded := _decode_strictly(data, codec)) and not decoded.text.isascii():
                return decoded
    if b"~{" in data and (decoded := _decode_strictly(data, "hz")):
        foreign = [c for c in decoded.text if c > "\x7f"]
        if len(foreign) >= 4 and sum("\u3000" <= c <= "\u9fff" or c >= "\uff00" for c in foreign) > 0.9 * len(foreign):
            return decoded
    return None


def _decode_utf16(data: bytes) -> Decoded | None:
    """Decode UTF-16 without a mark, told by its zero bytes; of fewer than four pairs these say too little."""
    if len(data) < 8 or len(data) % 2 or 0 not in data:
        return None
    codec = utf16_codec(data)
    return _decode_strictly(data, codec) if codec else None


def _decode_by_statistics(data: bytes) -> Decoded | None:
    """Decode by what chardet finds, then as T.61, then as windows-1252, each only if the result looks like text."""
    # The time that chardet takes grows with the bytes.
    guess = chardet.detect(data[:200_000], encoding_era=ERAS)
    share = (len(data) - len(data.translate(None, bytes(range(128, 256))))) / len(data)
    candidates = ["t.61", "windows-1252"]
    label = guess["encoding"]
    # Few bytes above ASCII give little confidence whatever the codec, so there its first guess stands.
    if label and ((guess["confidence"] or 0) >= LOW_CONFIDENCE or share < MOSTLY_ASCII):
        candidates.insert(0, label.lower())
    for codec in candidates:
        decoded = _decode_t61(data) if codec == "t.61" else _decode_strictly(data, codec)
        if decoded and _looks_like_text(decoded.text):
            return decoded
    return None


def _decode_t61(data: bytes) -> Decoded | None:
    """Decode T.61 as far as diacritics go; None if any byte above ASCII is none before a letter."""
    if len(T61_MARKED.sub(b"", data).translate(None, bytes(range(128)))):
        return None
    text = data.decode("latin-1")
    pairs = re.sub(r"([\xc1-\xcf])([A-Za-z])", lambda m: m[2] + T61[ord(m[1])], text)
    return Decoded(unicodedata.normalize("NFC", pairs), "t.61")


QUESTION_MARK_INSIDE = re.compile(r"(?<=[^\W\d_])\?(?=[^\W\d_])")
DIGIT_INSIDE = re.compile(r"(?<=[^\W\d_a-zA-Z])\d+(?=[^\W\d_])|(?<=[^\W\d_])\d+(?=[^\W\d_a-zA-Z])")
SYMBOL_INSIDE = re.compile(r"(?<=[^\W\d_])([^\w\s'’‘`´·.,:;/()\[\]?\-–—\u00ad\u3000-\u30ff\uff00-\uffef])(?=[^\W\d_])")


def _looks_like_text(text: str) -> bool:
    """Say whether a guessed decoding is words: what a font encoding or a wrong alphabet gives is not.

    Only what lies beside a character above ASCII counts, so that program code in a legacy encoding is no garbage.
    """
    letters = sum(1 for c in text if c.isalpha()) or 1
    foreign = sum(1 for c in text if c > "\x7f")
    if foreign < MOSTLY_ASCII * len(text):
        return len(QUESTION_MARK_INSIDE.findall(text)) < 0.02 * letters and foreign < len(text)
    if len(QUESTION_MARK_INSIDE.findall(text)) > 0.02 * letters or len(DIGIT_INSIDE.findall(text)) > 0.03 * letters:
        return False
    rough = sum(1 for m in SYMBOL_INSIDE.finditer(text) if m[1] > "\x7f" or _is_beside_non_ascii(text, m.start()))
    rising = sum(1 for a, b in itertools.pairwise(text) if b > "\x7f" and a.islower() and b.isupper())
    controls = len(CONTROL.findall(text))
    return rough + rising + controls <= 0.01 * letters


def _is_beside_non_ascii(text: str, at: int) -> bool:
    """Say whether a neighbour of a position is above ASCII."""
    return text[at - 1] > "\x7f" or text[at + 1 : at + 2] > "\x7f"
