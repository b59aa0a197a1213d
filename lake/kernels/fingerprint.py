"""What decides a kernel's results, as one hash, so that no version number is kept by hand.

The code enters as its syntax tree without docstrings, of the kernel's module and of every module of `transforms` that
it imports, transitively, and of the modules of `lake` that these name (but errors, whose messages decide no result).
Beside it: parameters, types, model files and the versions of the third-party packages that `transforms` imports. A
comment, a docstring or a blank line changes nothing; a changed constant does. The digest of a project
(`lake.kernels.project`) takes the code that its Python models import by the same rule.

`transforms` and `lake` are those that run. All other modules are looked for in files, first in the project's folder and
never in the working directory: dbt is started with it on `sys.path`, the command `lake` without, and both must find the
same.
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
from lake.schema import PACKAGE
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


def code_of(*modules: str, project: Path = PACKAGE) -> list[str]:
    """Return the modules whose code decides what these modules' functions return, themselves among them, sorted.

    Args:
        modules: their full names.
        project: folder in which modules of the user's own are looked for first.
    """
    seen: set[str] = set()
    todo = [*modules]
    while todo:
        name = todo.pop()
        if name in seen or name in NEUTRAL:
            continue
        seen.add(name)
        # What `lake` imports in turn (storage, dbt) moves rows and makes none.
        if not _is_of_lake(name):
            todo += _imports(name, project)[0]
    return sorted(seen)


def described(modules: Iterable[str], packages: Iterable[str] = (), project: Path = PACKAGE) -> list[str]:
    """Return fields that differ where the code of modules, or the version of a package that they use, does.

    Args:
        modules: as `code_of` gives them.
        packages: top-level names of more third-party packages.
        project: as for `code_of`.
    """
    modules = [*modules]
    used = {p for m in modules if not _is_of_lake(m) for p in _imports(m, project)[1]} | {*packages}
    code = [field for module in modules for field in (module, _syntax_of(module, project))]
    return code + [f"{p} {_version(p)}" for p in sorted(used)]


def imports(source: str, project: Path = PACKAGE) -> tuple[list[str], list[str]]:
    """Return what a program imports, anywhere in its code.

    Args:
        source: Python.
        project: as for `code_of`.

    Returns:
        Modules whose source counts (`transforms`, `lake`, and what no package on this machine has installed), and the
        top-level names of third-party packages, whose versions count; both sorted.
    """
    return _sorted_out(_import_statements(source, ""), project)


def syntax(source: str) -> str:
    """Return a program's syntax tree as text, without docstrings, comments and positions.

    Empty fields are left out, so that Python versions that add fields to the grammar give the same text.
    """
    return _text(ast.parse(source))


def _syntax_of(module: str, project: Path) -> str:
    file = _file(module, project)
    return _syntax_in(file, *_state(file)) if file else ""


@functools.lru_cache(maxsize=4096)  # by time and size: an edited file is read again, also in one process
def _syntax_in(file: Path, _changed: int, _size: int) -> str:
    return syntax(file.read_text("utf-8"))


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


def _imports(module: str, project: Path) -> tuple[list[str], list[str]]:
    file = _file(module, project)
    if file is None:
        return [], []
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    # What the user's own modules import depends on which others of theirs are there by now.
    find = _imports_in if module.split(".")[0] in OURS else _imports_in.__wrapped__
    return find(file, package, project, *_state(file))


@functools.lru_cache(maxsize=4096)
def _imports_in(file: Path, package: str, project: Path, _changed: int, _size: int) -> tuple[list[str], list[str]]:
    return _sorted_out(_import_statements(file.read_text("utf-8"), package), project)


Imported = tuple[str, tuple[str, ...]]
"""A module, and the names that are imported from it."""


def _state(file: Path) -> tuple[int, int]:
    stat = file.stat()
    return stat.st_mtime_ns, stat.st_size


def _import_statements(source: str, package: str) -> Iterator[Imported]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            yield base, tuple(alias.name for alias in node.names)


def _sorted_out(statements: Iterable[Imported], project: Path) -> tuple[list[str], list[str]]:
    """Return the modules whose source counts and the packages whose versions count, both sorted."""
    code: set[str] = set()
    packages: set[str] = set()
    for base, names in statements:
        top = base.split(".")[0]
        if top in OURS or _is_local(top, project):
            inner = (f"{base}.{name}" for name in names)
            code.update([base, *(name for name in inner if _is_module(name, project))])
        elif top not in sys.stdlib_module_names or top == "unicodedata":
            packages.add(top)
    return sorted(code), sorted(packages)


def _is_of_lake(module: str) -> bool:
    return module.split(".")[0] == "lake"


def _is_local(top: str, project: Path) -> bool:
    """Say whether a module is the user's own: a file of the project, or one that no installed package has."""
    if top in sys.stdlib_module_names:
        return False
    in_project = _find(top, [project])
    # A folder without `__init__.py` hides no package: Python goes on looking.
    if any(place.is_file() for place in in_project):
        return True
    return not _version(top) and bool(in_project or _find(top, _places(project)))


def _is_module(name: str, project: Path) -> bool:
    if name.split(".")[0] not in OURS:
        return bool(_find(name, _places(project)))
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _file(module: str, project: Path) -> Path | None:
    """Return the file of a module, None for a folder without `__init__.py`."""
    if module.split(".")[0] in OURS:
        spec = importlib.util.find_spec(module)
        return Path(spec.origin) if spec is not None and spec.origin is not None else None
    places = _find(module, _places(project))
    assert places, f"{module} was found before"
    return places[0] if places[0].is_file() else None


def _places(project: Path) -> list[Path]:
    """Return the folders to look for modules in; an empty entry of `sys.path` is the working directory."""
    return [project, *(Path(entry) for entry in sys.path if entry)]


def _find(module: str, places: list[Path]) -> list[Path]:
    """Return a module's file, or its folders where it has no file of its own; none where it is not there.

    By hand, since Python's own search imports the packages on the way, and takes what is imported already, such as
    another project's module of that name.
    """
    top, _, inner = module.partition(".")
    folders = []
    for place in places:
        if (package := place / top / "__init__.py").is_file():
            return _find(inner, [package.parent]) if inner else [package]
        if (file := place / f"{top}.py").is_file():
            return [] if inner else [file]
        if (place / top).is_dir():
            folders.append(place / top)
    return _find(inner, folders) if inner else folders


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


@functools.cache  # by name: an installed package does not change under a process that may have loaded it
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
