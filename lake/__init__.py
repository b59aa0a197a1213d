"""Rows in and out of storage: landing, tables, memos, builds, releases and queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from lake.query.query import Lake

__version__ = "0.1.0"
__all__ = ["__version__", "open"]


def open(home: str | os.PathLike[str] | None = None) -> Lake:
    """Open a lake for reading.

    Args:
        home: the lake's folder or URL; default `LAKE_HOME`, else `.lake` in the project.

    Returns:
        A lake whose `sql`, `release` and `releases` read published tables.
    """
    from lake.query.query import Lake

    return Lake(home)
