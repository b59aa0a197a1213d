"""A fingerprint follows all that decides a kernel's results, and nothing else."""

from __future__ import annotations

import functools
import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lake.errors import InternalError
from lake.kernels.fingerprint import code_of, fingerprint, syntax
from transforms.kernel import Kernel

ROOT = Path(__file__).resolve().parents[3]


def halves(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([pa.array([len(t) // 2 for t in batch.column("text").to_pylist()])], names=["half"])


HALVES = Kernel("halves", pa.schema([("text", pa.string())]), pa.schema([("half", pa.int64())]), halves)
CHANGES = [  # file, what stands there (empty: append), what to put, whether the fingerprint of the kernel chat changes
    ("transforms/chat/chats.py", "import json\n", "import json  # a comment\n\n\n", False),
    ("transforms/chat/chats.py", '"""Read one record.\n', '"""Read a single record.\n', False),
    ("transforms/chat/formats/openai_chat.py", "", "\nSEEN = 1\n", True),
    ("transforms/chat/turns.py", "", "\nSEEN = 1\n", True),
    ("transforms/text/document_text.py", "", "\nSEEN = 1\n", False),
    ("lake/schema.py", "", "\nSEEN = 1\n", True),
    ("lake/record_keys/chats.py", "", "\nSEEN = 1\n", True),
    ("lake/times.py", "", "\nSEEN = 1\n", True),
    ("lake/record_keys/documents.py", "", "\nSEEN = 1\n", False),
    ("lake/errors.py", "", "\nSEEN = 1\n", False),
    ("lake/storage/table.py", "", "\nSEEN = 1\n", False),
]
CHANGER = """
import json, pathlib, sys
from lake.kernels import fingerprint
from transforms.chat.chats import CHAT
before = fingerprint.fingerprint(CHAT)
for file, old, new, _ in json.load(sys.stdin):
    path = pathlib.Path(file)
    text = path.read_text()
    assert old in text, old
    path.write_text(text.replace(old, new, 1) if old else text + new)
    print(fingerprint.fingerprint(CHAT) != before)
    path.write_text(text)
"""


def test_a_fingerprint_follows_the_code_that_decides_results_and_nothing_else(tmp_path: Path) -> None:
    for name in ("lake", "transforms", "contracts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-c", CHANGER],
        cwd=tmp_path,
        input=json.dumps(CHANGES),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(changes) for *_, changes in CHANGES]


def test_parameters_types_and_model_files_are_part_of_a_fingerprint(tmp_path: Path) -> None:
    model = tmp_path / "model.bin"
    model.write_bytes(b"1")

    def made(**changed: object) -> str:
        fields = {"name": "halves", "inputs": HALVES.inputs, "results": HALVES.results, "compute": halves}
        return fingerprint(Kernel(**{**fields, **changed}))  # type: ignore[arg-type]

    first = {
        made(),
        made(parameters={"n": 1}),
        made(parameters={"n": 2}),
        made(results=pa.schema([("half", pa.int32())])),
    }
    with_model = made(model_files=(str(model),))
    model.write_bytes(b"2")
    assert len({*first, with_model, made(model_files=(str(model),))}) == 6


def made_by(half: int) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    def carried(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([pa.array([half] * batch.num_rows, pa.int64())], names=["half"])

    return carried


class Halver:
    def halves(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return halves(batch)


carried = made_by(2)  # a closure that has its own name at the top of the module
halves_lambda = lambda batch: halves(batch)  # noqa: E731
UNSEEN = {
    "closure": made_by(1),
    "closure of that name": carried,
    "lambda": halves_lambda,
    "method": Halver().halves,
    "function of a class": Halver.halves,
    "partial": functools.partial(halves),
}


@pytest.mark.parametrize("kind", UNSEEN)
def test_a_kernel_whose_code_is_no_plain_function_of_a_module_is_refused(kind: str) -> None:
    refused = "is no plain function at the top of a module"
    fields = (HALVES.inputs, HALVES.results)
    with pytest.raises(InternalError, match=refused):
        fingerprint(Kernel("halves", *fields, UNSEEN[kind]))
    with pytest.raises(InternalError, match=refused):
        fingerprint(Kernel("halves", *fields, halves, prepare=UNSEEN[kind]))


def test_the_code_of_prepare_is_part_of_a_fingerprint() -> None:
    def of(prepare: Callable[[pa.Table], object]) -> str:
        return fingerprint(Kernel("halves", HALVES.inputs, HALVES.results, halves, prepare))

    other = importlib.import_module("transforms.text.http_message")  # an import statement would be this module's own
    assert of(other.parse) != of(halves) == fingerprint(HALVES)


def test_syntax_ignores_comments_docstrings_and_layout_only() -> None:
    plain = syntax("def f(a, b=2):\n    return a + b\n")
    assert syntax('"""Doc."""\ndef f(a,\n      b = 2):  # why\n    """Doc."""\n    return (a + b)\n') == plain
    assert syntax("def f(a, b=3):\n    return a + b\n") != plain
    assert syntax("def f(a, b=2):\n    return a - b\n") != plain
    assert syntax("x = 1") != syntax("x = True") != syntax("x = 1.0")


def test_the_code_of_a_kernel_reaches_every_format_and_no_errors() -> None:
    modules = code_of("transforms.chat.chats")
    formats = [p.stem for p in (ROOT / "transforms/chat/formats").glob("*.py") if p.stem != "__init__"]
    assert {f"transforms.chat.formats.{name}" for name in formats} <= {*modules} and len(formats) > 10
    assert "lake.errors" not in modules and "lake.schema" in modules
