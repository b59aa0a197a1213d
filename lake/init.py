"""A user's own project, laid out from our files: models, contracts, macros, dbt's tests, its project and profile."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from lake.errors import UsageError
from lake.schema import PACKAGE

PARTS = ("dbt_project.yml", "models", "contracts", "transforms/macros", "tests/dbt", "lake/profiles.yml")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


def init(folder: str | os.PathLike[str] = ".") -> list[Path]:
    """Lay out a project.

    Args:
        folder: where; made if it is not there.

    Returns:
        What was made, below the folder.

    Raises:
        UsageError: a part is there already; nothing is written.
    """
    target, ours = Path(folder).resolve(), PACKAGE
    there = [part for part in PARTS if (target / part).exists()]
    if there:
        raise UsageError(
            f"{target} already has {', '.join(there)}; expected none of these, nothing is overwritten. "
            "Name another folder."
        )
    for part in PARTS:
        (target / part).parent.mkdir(parents=True, exist_ok=True)
        if (ours / part).is_dir():
            shutil.copytree(ours / part, target / part, ignore=LEFT_OUT)
        else:
            shutil.copy(ours / part, target / part)
    ignored = target / ".gitignore"
    if not ignored.exists():
        ignored.write_text(".lake/\ntarget/\nlogs/\n__pycache__/\n")
    return [Path(part) for part in PARTS]
