"""Keys, and marks of bytes, that formats are known and read by: one table each, for landing and for the rows' readers.

What a format is recognised by and what its reader looks for must not drift apart: a label that one half knows and the
other does not makes a rejected answer a row to train on. `tests/lake/sources/test_registry.py` holds the halves
together. One module per kernel, since a table is part of the fingerprint of the kernel that reads it. They import
nothing. The first key of a table that a record has counts.
"""
