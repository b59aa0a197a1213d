"""Small files made into one: landings of small batches and releases of few rows leave many, and readers pay for each.

The old files stay on disk for the versions that name them, until `lake gc`. Rows and their order in a file are kept.
Where somebody else commits meanwhile, nothing is compacted: the next landing comes by.
"""

from __future__ import annotations

from collections.abc import Sequence

from lake.storage import parquet, table

SMALL_BYTES = 16 << 20
AT_LEAST = 8  # small files before it is worth a commit
AT_MOST_BYTES = 256 << 20  # read at one time


def small_files(files: Sequence[str]) -> list[str]:
    """Return which of a table's files are to be joined: the smallest, where they are many; else none.

    Args:
        files: paths or URLs, all in one folder.

    Returns:
        At least AT_LEAST files of at most SMALL_BYTES each and AT_MOST_BYTES together, or none.
    """
    if len(files) < AT_LEAST:
        return []
    filesystem, _ = table.filesystem_of(files[0])
    infos = filesystem.get_file_info([table.filesystem_of(f)[1] for f in files])
    small, total = [], 0
    for file, info in sorted(zip(files, infos, strict=True), key=lambda pair: (pair[1].size, pair[0])):
        if info.size > SMALL_BYTES or total + info.size > AT_MOST_BYTES:
            break
        small.append(file)
        total += info.size
    return small if len(small) >= AT_LEAST else []


def join_small_files(uri: str) -> bool:
    """Join the small files of a table in one commit.

    Args:
        uri: the table.

    Returns:
        Whether it did.
    """
    base = table.snapshot(uri)
    small = small_files(base.files) if base else []
    if base is None or not small:
        return False
    new = table.write(uri, base.schema, parquet.read_batches(small))
    try:
        table.commit(base, new, removes=small, note={"purpose": "small files joined"})
    except table.CommitConflict:
        parquet.delete_files(new)
        return False
    return True
