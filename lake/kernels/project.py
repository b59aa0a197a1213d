"""What a build was made by: one hash over models, macros, tests, contracts, seeds and the code that models import.

An audit is worth something only for the project that built the tables, so every invocation of dbt notes this digest
and `lake publish` compares. dbt sees no code that a Python model imports: kernels enter by their fingerprints, and all
else that models/**/*.py import as syntax trees, so that a comment in a module makes no new project.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from lake import schema
from lake.errors import ContractError
from lake.identity import H
from lake.kernels.fingerprint import code_of, described, fingerprint, imports
from transforms.kernel import Kernel

FOLDERS = ("models", "transforms/macros", "tests/dbt", "contracts")
ENDINGS = (".sql", ".py", ".yml", ".yaml", ".csv")


def digest(project: Path, variables: str = "{}") -> str:
    """Return the hash of everything that decides what a build of this project gives.

    Args:
        project: folder of dbt_project.yml.
        variables: dbt's `--vars`, as canonical JSON.

    Returns:
        32 hex digits, the same for equal files wherever they lie and whatever their times.
    """
    # SQL may give other rows under another DuckDB.
    fields: list[str | bytes] = ["project", variables, version("duckdb")]
    for path in [project / "dbt_project.yml", *_files(project)]:
        fields += [path.relative_to(project).as_posix(), path.read_bytes()]
    for name, kernel in sorted(kernels(project).items()):
        fields += [name, fingerprint(kernel)]
    return H(*fields, *_imported_code(project))


def kernels(project: Path) -> dict[str, Kernel]:
    """Return the kernels that a project's models `memo_<name>.py` give to `memo.extend`, by name.

    Raises:
        ContractError: such a model gives it no kernel of its name, or a contract has other types than the kernel makes.
    """
    models = sorted((project / "models").rglob("memo_*.py"))
    by_name = {name: _kernel(model, name) for model in models for name in [model.stem.removeprefix("memo_")]}
    for kernel in by_name.values():
        for table, columns in kernel.contract_columns.items():
            schema.check_columns(project, table, [*columns], f"the kernel {kernel.name} makes it")
    return by_name


def _kernel(model: Path, name: str) -> Kernel:
    tree = ast.parse(model.read_text("utf-8"))
    froms = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    imported = {a.asname or a.name: (str(n.module), a.name) for n in froms for a in n.names}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "memo.extend"]
    given = [ast.unparse(call.args[1]) for call in calls if len(call.args) > 1]
    module, attribute = imported.get(given[0], ("", "")) if len(given) == 1 else ("", "")
    # A module of the project's own can be imported in dbt's process and not by the command `lake`.
    if module.split(".")[0] == "transforms":
        value = getattr(importlib.import_module(module), attribute, None)
        if isinstance(value, Kernel) and value.name == name:
            return value
    raise ContractError(
        f"{model.name} calls memo.extend with {', '.join(given) or 'no kernel'}; expected one call with a Kernel named "
        f"{name!r}: `from transforms.<module> import KERNEL`, then `memo.extend(session, KERNEL, ...)`. Mend it."
    )


def _imported_code(project: Path) -> list[str]:
    folder = project.resolve()
    modules: set[str] = set()
    packages: set[str] = set()
    for model in (project / "models").rglob("*.py"):
        own, others = imports(model.read_text("utf-8"), folder)
        modules.update(own)
        packages.update(others)
    return described(code_of(*modules, project=folder), packages, folder)


def _files(project: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        files = (p for p in (project / folder).rglob("*") if p.suffix in ENDINGS and p.is_file())
        yield from sorted(files, key=lambda p: p.relative_to(project).as_posix())
