"""H, the one hash that Python and SQL share.

H(a, b, ...) is the first 128 bits, as 32 hex digits, of SHA-256 over the fields, each after its byte length
in decimal and a colon (a netstring without the comma), so that no two lists of fields give the same bytes.
The SQL twin is the macro `h` in `transforms/macros/identity.sql`; `tests/models/test_macros.py` holds them together.
"""

from __future__ import annotations

import hashlib


def H(*fields: str | bytes) -> str:  # noqa: N802  the design's name for it
    """Return the identity hash of some fields.

    Args:
        fields: texts (taken as UTF-8) or bytes, in order.

    Returns:
        32 lower-case hex digits.

    >>> H("record", "traces") == H("recordt", "races")
    False
    """
    digest = hashlib.sha256()
    for field in fields:
        data = field.encode() if isinstance(field, str) else field
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()[:32]
