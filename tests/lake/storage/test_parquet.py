"""Files of rows beside a table: read back in order, here or in a store, and deleted without complaint."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lake.storage.parquet import delete_files, filesystem_of, read_batches, write


@pytest.mark.parametrize("where", ["local", "memory"])
def test_rows_are_read_in_order_and_files_deleted_once_or_twice(where: str, tmp_path: Path) -> None:
    uri = str(tmp_path) if where == "local" else "memory://test_parquet"
    rows = pa.table({"key": [f"{n:03d}" for n in range(100)], "n": list(range(100))})
    files = [*write(uri, rows.schema, rows), *write(uri, rows.schema, rows.slice(0, 1))]
    batches = list(read_batches([file.path for file in files], ["n"], rows=30))
    assert [batch.num_rows for batch in batches] == [30, 30, 30, 10, 1]
    assert pa.Table.from_batches(batches) == pa.concat_tables([rows, rows.slice(0, 1)]).select(["n"]).combine_chunks()
    delete_files(files[:1])
    delete_files(files)  # one of them is gone already
    paths = [filesystem_of(file.path) for file in files]
    assert not any(filesystem.get_file_info(path).is_file for filesystem, path in paths)
