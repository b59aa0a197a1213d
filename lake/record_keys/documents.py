"""Keys of web rows, and the bytes by which a file or payload is told to be no text."""

# The most usual first.
TEXT_KEYS = (
    "text", "content", "raw_content", "page_content", "document", "body", "markdown", "article", "passage", "contents",
)  # fmt: skip

# First bytes

_NO_TEXT = (  # PDF, images, archives, fonts, and RIFF's sounds and pictures
    b"%PDF-", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"PK\x03\x04", b"\x1f\x8b", b"wOFF", b"wOF2", b"RIFF",
)  # fmt: skip
# Of files more: archives, Parquet, executables, SQLite, sounds. A payload that begins so has a media type, which tells.
NO_TEXT_FILE = (
    *_NO_TEXT, b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PAR1", b"\x7fELF", b"SQLite format 3\x00", b"OggS", b"ID3",
    b"MZ\x90", b"\xca\xfe\xba\xbe",
)  # fmt: skip
# Of payloads the icons that servers send for any address; of a file, their control characters tell.
NO_TEXT_PAYLOAD = (*_NO_TEXT, b"\x00\x00\x01\x00")

# All bytes

# Without tab, line feed, form feed, carriage return, and the backspace and escape that terminals and ISO-2022 write.
CONTROL_BYTES = bytes(set(range(32)) - {8, 9, 10, 12, 13, 27})


def has_control_bytes(data: bytes) -> bool:
    """Say whether more than 2 % of some bytes are control characters, more than a damaged text has."""
    return len(data.translate(None, CONTROL_BYTES)) < 0.98 * len(data)


def utf16_codec(data: bytes) -> str | None:
    """Return the codec of UTF-16 without a mark, or None where bytes do not look like it.

    A quarter of one byte of each pair is zero, and next to none of the other.
    """
    half = max(1, len(data) // 2)
    high, low = data[0::2].count(0), data[1::2].count(0)
    if low > 0.25 * half and high < 0.02 * half:
        return "utf-16-le"
    if high > 0.25 * half and low < 0.02 * half:
        return "utf-16-be"
    return None
