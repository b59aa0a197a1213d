"""Write the files that follow from the contracts, or say which differ.

Everything is made in memory first: a contract that is wrong, or a file of the same name that somebody wrote by hand,
stops the sync before the first byte is written. Files are replaced whole and only where they differ.
"""

from __future__ import annotations

from pathlib import Path

from lake.contract.dbt import MARK, rendered
from lake.errors import ContractError
from lake.files import write_whole


def sync(project: Path, check: bool = False) -> list[Path]:
    """Bring a project's generated files up to date.

    Args:
        project: folder of dbt_project.yml, contracts/ and models/.
        check: write nothing.

    Returns:
        The files that differed (and, without `check`, do no longer), relative to the project, sorted. Files whose
        contract is gone are among them, and are deleted.

    Raises:
        ContractError: a contract is wrong, or a file that is not ours stands where one has to be written.
    """
    wanted = rendered(project)
    ours = {f: f.read_text("utf-8") for f in sorted((project / "models").rglob("*.yml")) if _is_ours(f)}
    foreign = [f.relative_to(project) for f in wanted if f.exists() and f not in ours]
    if foreign:
        raise ContractError(
            f"{', '.join(map(str, foreign))}: written by hand where a contract has to be put (a first line that begins "
            f"with {MARK!r} was expected). Move what it says into the contract and delete it; nothing was written."
        )
    stale = [f for f in ours if f not in wanted]
    differing = [f for f, text in wanted.items() if ours.get(f) != text]
    if not check:
        for file in stale:
            file.unlink()
        for file in differing:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, wanted[file].encode())
    return sorted(f.relative_to(project) for f in [*stale, *differing])


def _is_ours(file: Path) -> bool:
    with file.open(encoding="utf-8") as lines:
        return lines.readline().startswith(MARK)
