"""Formats, one module each: what a file is recognised by, and how its records are cut and named.

Two layers read a file. A *container* (`lake.landing.containers`) turns its bytes, decompressed, into records: JSONL, a
JSON list, one JSON value, the items below a key, CSV, Parquet. A *format* says whether records are its own.

To add one: write `lake/sources/<name>.py` after the protocol in `lake.sources.protocol` that fits, put it into its
table in `lake.sources.registry`, and keep the keys that a reader looks for as well in `lake.record_keys`. A format of
chats needs a reader in `transforms/chat/formats` (its `__init__` says how). Then a line in README's table of formats
and records of each spelling in `tests/lake/sources/test_registry.py`, which fails until all of these are there.
Modules are small and import nothing heavy.
"""
