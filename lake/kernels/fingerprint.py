"""What decides a kernel's results, as one hash, so that no version number is kept by hand.

The code enters as its syntax tree without docstrings, of the kernel's module and of every module of `transforms` that
it imports, transitively, and of the modules of `lake` that these name (but errors, whose messages decide no result).
Beside it: parameters, types, model files and the versions of the third-party packages that `transforms` imports. A
comment, a docstring or a blank line changes nothing; a changed constant does.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from lake.identity import H
from transforms.kernel import Kernel

OURS = ("transforms", "lake")
NEUTRAL = ("lake.errors",)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def fingerprint(kernel: Kernel) -> str:
    """Return the hash of all that decides a kernel's results.

    Args:
        kernel: its `compute` is a function at the top of a module.

    Returns:
        32 hex digits.
    """
    modules = code_of(kernel.compute.__module__)
    packages = sorted({p for m in modules if not m.startswith("lake.") for p in _imports(m)[1]})
    return H(
        "kernel",
        kernel.name,
        str(kernel.inputs),
        str(kernel.results),
        json.dumps(dict(kernel.parameters), sort_keys=True),
        *[part for m in modules for part in (m, _syntax_of(m))],
        *[f"{p} {_version(p)}" for p in packages],
        *[_file_hash(path, Path(path).stat().st_mtime_ns) for path in kernel.model_files],
    )


def code_of(module: str) -> list[str]:
    """Return the modules whose code a kernel's results depend on, sorted."""
    seen: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name in seen or name in NEUTRAL:
            continue
        seen.add(name)
        if not name.startswith("lake."):
            todo += _imports(name)[0]
    return sorted(seen)


def syntax(source: str) -> str:
    """Return a program's syntax tree as text, without docstrings, comments and positions.

    Empty fields are left out, so that Python versions that add fields to the grammar give the same text.
    """
    return _text(ast.parse(source))


@functools.cache
def _syntax_of(module: str) -> str:
    return syntax(_source(module))


def _text(node: object) -> str:
    if isinstance(node, ast.AST):
        fields = [(k, _body(node, k, v)) for k, v in ast.iter_fields(node)]
        return f"{type(node).__name__}({','.join(f'{k}={_text(v)}' for k, v in fields if v is not None and v != [])})"
    if isinstance(node, list):
        return f"[{','.join(_text(n) for n in node)}]"
    return repr(node)


def _body(node: ast.AST, field: str, value: object) -> object:
    if field == "body" and isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        return node.body[1:]
    return value


@functools.cache
def _imports(module: str) -> tuple[list[str], list[str]]:
    """Return the modules of ours and the third-party packages that a module imports anywhere in its code."""
    ours: set[str] = set()
    packages: set[str] = set()
    for name in _imported(module):
        top = name.split(".")[0]
        if top in OURS:
            ours.add(name)
        elif top not in sys.stdlib_module_names or top == "unicodedata":
            packages.add(top)
    return sorted(ours), sorted(packages)


def _imported(module: str) -> Iterator[str]:
    spec = importlib.util.find_spec(module)
    package = module if spec and spec.submodule_search_locations else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            yield base
            for alias in node.names:
                if base.split(".")[0] in OURS and _is_module(f"{base}.{alias.name}"):
                    yield f"{base}.{alias.name}"


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _source(module: str) -> str:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).read_text("utf-8")


@functools.cache
def _version(package: str) -> str:
    if package == "unicodedata":  # normalisation and letter classes follow Python's tables
        return unicodedata.unidata_version
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # its distribution has another name; the whole map takes a second
        names = importlib.metadata.packages_distributions().get(package, [])
        return " ".join(f"{n} {importlib.metadata.version(n)}" for n in sorted(set(names)))


@functools.cache
def _file_hash(path: str, _changed: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
