"""The tree that lake/errors.py opens with is the tree of its classes."""

from __future__ import annotations

import re

from lake import errors


def classes_below(error: type[errors.LakeError]) -> list[type[errors.LakeError]]:
    """Subclasses in their order; those of other modules (training has one) are not in the tree."""
    return [below for below in error.__subclasses__() if below.__module__ == errors.__name__]


def drawn(error: type[errors.LakeError], indent: str = "") -> list[str]:
    lines = []
    for place, below in enumerate(classes := classes_below(error)):
        is_last = place + 1 == len(classes)
        lines.append(f"{indent}{'└' if is_last else '├'}── {below.__name__}")
        lines += drawn(below, f"{indent}{'    ' if is_last else '│   '}")
    return lines


def test_the_drawn_tree_has_every_error_in_its_place() -> None:
    tree = re.findall(r"^((?:[│ ]   )*[├└]── \w+)", errors.__doc__ or "", re.MULTILINE)
    assert tree == drawn(errors.LakeError)


def test_the_tree_says_the_exit_code_of_each_class_below_the_root() -> None:
    exit_codes = re.findall(r"^[├└]── (\w+) .*\(exit (\d)\)$", errors.__doc__ or "", re.MULTILINE)
    assert exit_codes == [(e.__name__, str(e.exit_code)) for e in classes_below(errors.LakeError)]
