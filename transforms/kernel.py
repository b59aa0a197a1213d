"""What a kernel is: a pure function from Arrow batch to Arrow batch, with all that decides its result.

`lake.kernels.memo` stores what a kernel returned by (key of the input, fingerprint) and never asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Kernel:
    """A memoised function.

    `compute` and `prepare` are plain functions at the top of a module: the fingerprint is taken of that module's code,
    and sees no value that a closure, a bound method or a partial carries. `lake.kernels.fingerprint` refuses these.

    Attributes:
        name: snake case; its memo is the view `memo.<name>`, its model `memo_<name>`.
        inputs: columns of the batches that `compute` takes. The memo's key (a column `key`) is not among them.
        results: columns of the batches that it returns, row i for row i of the input.
        compute: batch to batch, same number of rows; independent of row order and batch size; thread-safe. With
            `prepare`, a second argument is what that returned.
        prepare: takes the table that all rows are looked up in (`context` of `memo.extend`), once a build; for kernels
            such as a search for given items. What of it decides a row's result must be in the memo's key.
        parameters: values that decide results and are not written in the code, such as n of an n-gram.
        model_files: absolute paths of model files that it loads.
        contract_columns: columns of contracts, by table, whose types the package's code puts into `results`.
    """

    name: str
    inputs: pa.Schema
    results: pa.Schema
    compute: Callable[..., pa.RecordBatch]
    prepare: Callable[[pa.Table], Any] | None = None
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    model_files: tuple[str, ...] = ()
    contract_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
