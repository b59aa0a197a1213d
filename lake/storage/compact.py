"""Small files of a raw table made into one: a landing of small batches leaves many, and readers pay for each.

The old files stay on disk for the versions that name them, until `lake gc`. Rows and their order in a file are kept.
Where somebody else commits meanwhile, nothing is compacted: the next landing comes by.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from lake import schema
from lake.storage import table

SMALL_BYTES = 16 << 20
AT_LEAST = 8  # small files before it is worth a commit
AT_MOST_BYTES = 256 << 20  # read at one time


def small_files(uri: str, contract: str) -> bool:
    """Join the small files of a table in one commit.

    Args:
        uri: the table.
        contract: its contract, such as raw/traces.

    Returns:
        Whether it did.
    """
    base = table.snapshot(uri)
    if base is None or len(base.files) < AT_LEAST:
        return False
    filesystem, _ = table.filesystem_of(uri)
    infos = filesystem.get_file_info([table.filesystem_of(f)[1] for f in base.files])
    small, total = [], 0
    for file, info in sorted(zip(base.files, infos, strict=True), key=lambda pair: (pair[1].size, pair[0])):
        if info.size > SMALL_BYTES or total + info.size > AT_MOST_BYTES:
            break
        small.append(file)
        total += info.size
    if len(small) < AT_LEAST:
        return False
    new = table.write(uri, schema.arrow(contract), _batches(small))
    try:
        table.commit(base, new, removes=small, note={"purpose": "small files joined"})
    except table.CommitConflict:
        for written in new:
            filesystem.delete_file(table.filesystem_of(written.path)[1])
        return False
    return True


def _batches(files: list[str]) -> Iterator[pa.RecordBatch]:
    for file in files:
        filesystem, path = table.filesystem_of(file)
        with filesystem.open_input_file(path) as source:
            yield from pq.ParquetFile(source).iter_batches(batch_size=1024)
