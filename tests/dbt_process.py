"""dbt as a user runs it, a process of its own.

A fork of one that has it imported would save its start, and may hang: the libraries that dbt brings have threads, and a
lock that one of them holds is never freed in a fork.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(arguments: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run dbt.

    Args:
        arguments: as on dbt's command line.
        folder: the working directory.
        environment: variables beside those of this process.

    Returns:
        Exit code, and what dbt wrote to stdout and stderr.
    """
    finished = subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    return finished.returncode, finished.stdout + finished.stderr
