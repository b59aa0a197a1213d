"""What a build was made by: one hash over models, macros, tests, contracts, seeds and kernels.

An audit is worth something only for the project that built the tables, so every invocation of dbt notes this digest
and `lake publish` compares. Kernels are code that dbt does not see; they enter by their fingerprints.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

from lake.errors import ContractError
from lake.identity import H
from lake.kernels.memo import fingerprint
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
    fields: list[str | bytes] = ["project", variables]
    for path in [project / "dbt_project.yml", *_files(project)]:
        fields += [path.relative_to(project).as_posix(), path.read_bytes()]
    for name, kernel in sorted(kernels(project).items()):
        fields += [name, fingerprint(kernel)]
    return H(*fields)


def kernels(project: Path) -> dict[str, Kernel]:
    """Return the kernels that a project's models `memo_<name>.py` hand over, by name.

    Raises:
        ContractError: such a model imports no kernel of its name.
    """
    models = sorted((project / "models").rglob("memo_*.py"))
    return {m.stem.removeprefix("memo_"): _kernel(m, m.stem.removeprefix("memo_")) for m in models}


def _kernel(model: Path, name: str) -> Kernel:
    for node in ast.walk(ast.parse(model.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                value = getattr(importlib.import_module(node.module), alias.name, None)
                if isinstance(value, Kernel) and value.name == name:
                    return value
    raise ContractError(
        f"{model.name} imports no Kernel named {name!r}. Expected `from transforms.<module> import <KERNEL>` with "
        f"Kernel(name={name!r}, ...) there."
    )


def _files(project: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        found = (p for p in (project / folder).rglob("*") if p.suffix in ENDINGS and p.is_file())
        yield from sorted(found, key=lambda p: p.relative_to(project).as_posix())
