"""What decides a kernel's results, as one hash, so that no version number is kept by hand.

The code enters as its syntax tree without docstrings, of the kernel's module and of every module of `transforms` that
it imports, transitively, and of the modules of `lake` that these name (but errors, whose messages decide no result).
Beside it: parameters, types, model files and the versions of the third-party packages that `transforms` imports. A
comment, a docstring or a blank line changes nothing; a changed constant does. The digest of a project
(`lake.kernels.project`) takes the code that its Python models import by the same rule.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import inspect
import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from lake.errors import InternalError
from lake.identity import H
from transforms.kernel import Kernel

OURS = ("transforms", "lake")
NEUTRAL = ("lake.errors",)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def fingerprint(kernel: Kernel) -> str:
    """Return the hash of all that decides a kernel's results.

    Args:
        kernel: its `compute` and `prepare` are plain functions at the top of a module.

    Returns:
        32 hex digits.

    Raises:
        InternalError: one of them is a closure, a lambda, a method or a partial: what these carry is in no module.
    """
    functions = [f for f in (kernel.compute, kernel.prepare) if f is not None]
    modules = [_module_of(kernel, f) for f in functions]
    return H(
        "kernel",
        kernel.name,
        str(kernel.inputs),
        str(kernel.results),
        json.dumps(dict(kernel.parameters), sort_keys=True),
        *described(code_of(*modules)),
        *[_file_hash(path, Path(path).stat().st_mtime_ns) for path in kernel.model_files],
    )


def code_of(*modules: str) -> list[str]:
    """Return the modules whose code decides what these modules' functions return, themselves among them, sorted."""
    seen: set[str] = set()
    todo = [*modules]
    while todo:
        name = todo.pop()
        if name in seen or name in NEUTRAL:
            continue
        seen.add(name)
        # What `lake` imports in turn (storage, dbt) moves rows and makes none.
        if not _is_of_lake(name):
            todo += _imports(name)[0]
    return sorted(seen)


def described(modules: Iterable[str], packages: Iterable[str] = ()) -> list[str]:
    """Return fields that differ where the code of modules, or the version of a package that they use, does.

    Args:
        modules: as `code_of` gives them.
        packages: top-level names of more third-party packages.
    """
    modules = [*modules]
    used = {p for m in modules if not _is_of_lake(m) for p in _imports(m)[1]} | {*packages}
    code = [field for module in modules for field in (module, _syntax_of(module))]
    return code + [f"{p} {_version(p)}" for p in sorted(used)]


def imports(source: str, package: str = "") -> tuple[list[str], list[str]]:
    """Return what a program imports, anywhere in its code.

    Args:
        source: Python.
        package: that relative imports start from.

    Returns:
        Modules whose source counts (`transforms`, `lake`, and what no package on this machine has installed), and the
        top-level names of third-party packages, whose versions count; both sorted.
    """
    code: set[str] = set()
    packages: set[str] = set()
    for name in _imported(source, package):
        top = name.split(".")[0]
        if top in OURS or _is_local(top):
            code.add(name)
        elif top not in sys.stdlib_module_names or top == "unicodedata":
            packages.add(top)
    return sorted(code), sorted(packages)


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
    spec = importlib.util.find_spec(module)
    is_package = spec is not None and spec.submodule_search_locations is not None
    return imports(_source(module), module if is_package else module.rpartition(".")[0])


def _imported(source: str, package: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            yield base
            top = base.split(".")[0]
            for alias in node.names:
                if (top in OURS or _is_local(top)) and _is_module(f"{base}.{alias.name}"):
                    yield f"{base}.{alias.name}"


def _is_of_lake(module: str) -> bool:
    return module.split(".")[0] == "lake"


@functools.cache
def _is_local(top: str) -> bool:
    """Say whether a module is a file of the user's own: it can be imported, and no installed package has it."""
    return top not in sys.stdlib_module_names and not _version(top) and _is_module(top)


def _module_of(kernel: Kernel, function: Callable[..., object]) -> str:
    """Return the module that holds a function, if the module's code is all that the function is."""
    name, module = getattr(function, "__name__", ""), getattr(function, "__module__", None) or ""
    at_top = inspect.isfunction(function) and getattr(sys.modules.get(module), name, None) is function
    # A function made by another one can be assigned at the top of a module, and still carries values of that call.
    if not at_top or "<locals>" in function.__qualname__ or function.__closure__ is not None:
        raise InternalError(
            f"kernel {kernel.name}: {function!r} is no plain function at the top of a module (a closure, lambda, "
            "method or partial carries values that no fingerprint sees). Define it there; pass values as `parameters`, "
            "and a table to look rows up in through `prepare` and the context of `memo.extend`."
        )
    return module


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
