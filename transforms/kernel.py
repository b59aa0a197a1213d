"""What a kernel is: a pure function from Arrow batch to Arrow batch, with all that decides its result.

`lake.kernels.memo` stores what a kernel returned by (key of the input, fingerprint) and never asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True)
class Kernel:
    """A memoised function.

    Attributes:
        name: snake case; its memo is the view `memo.<name>`, its model `memo_<name>`.
        inputs: columns of the batches that `compute` takes. The memo's key (a column `key`) is not among them.
        results: columns of the batches that it returns, row i for row i of the input.
        compute: batch to batch, same number of rows; independent of row order and batch size; thread-safe.
        parameters: values that decide results and are not written in the code, such as n of an n-gram.
        model_files: absolute paths of model files that it loads.
    """

    name: str
    inputs: pa.Schema
    results: pa.Schema
    compute: Callable[[pa.RecordBatch], pa.RecordBatch]
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    model_files: tuple[str, ...] = ()
