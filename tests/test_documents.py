"""README and CONTRIBUTING name what is there: files, targets of make, commands, rooms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from lake.cli import main
from tests.conftest import ROOT

TEXTS = {name: (ROOT / name).read_text("utf-8") for name in ("README.md", ".github/CONTRIBUTING.md")}
FOLDERS = r"(?:lake|transforms|training|models|contracts|tests|\.ci|\.github)"
ROOMS = ("lake", "transforms", "models", "training")


def code(name: str) -> Iterator[str]:
    """Blocks and spans of code in a document."""
    text = TEXTS[name]
    yield from re.findall(r"^```\w*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


def named(name: str, pattern: str) -> set[str]:
    return {match for text in code(name) for match in re.findall(pattern, text)}


@pytest.mark.parametrize("name", TEXTS)
def test_every_path_that_a_document_names_is_there(name: str) -> None:
    paths = named(name, rf"(?<![\w./-]){FOLDERS}/[\w./*<>-]*") | named(name, r"^[\w.]+\.(?:toml|md|yml)$")
    assert len(paths) > 5
    globs = {path: re.sub(r"<\w+>", "*", path) for path in paths}
    assert [path for path, glob in globs.items() if not any(ROOT.glob(glob))] == []


@pytest.mark.parametrize("name", TEXTS)
def test_every_target_of_make_that_a_document_names_is_there(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE))
    wanted = named(name, r"\bmake ([a-z-]+)")
    assert {"test"} <= wanted <= targets


@pytest.mark.parametrize("name", TEXTS)
def test_every_command_that_a_document_names_is_there(name: str) -> None:
    uses = named(name, r"(?<![\w.-])lake ([a-z]+(?: [a-z]+)?)")
    assert uses
    assert [use for use in uses if not is_command(use.split())] == []


def is_command(words: list[str]) -> bool:
    command: click.Command = main
    for word in words:
        if not isinstance(command, click.Group):
            return True  # an argument
        if word not in command.commands:
            return False
        command = command.commands[word]
    return True


def test_contributing_describes_every_room_and_no_other() -> None:
    table = re.findall(r"^\| `([\w/]+)/` \| .{20,} \|$", TEXTS[".github/CONTRIBUTING.md"], flags=re.MULTILINE)
    folders = [folder for package in ROOMS for folder in (ROOT / package).iterdir() if holds_files(folder)]
    assert sorted(table) == sorted(f.relative_to(ROOT).as_posix() for f in folders)


def holds_files(folder: Path) -> bool:
    return any(file.is_file() for file in folder.rglob("*") if "__pycache__" not in file.parts)


def test_contributing_opens_with_the_targets_of_make_in_their_order() -> None:
    first = TEXTS[".github/CONTRIBUTING.md"].split("```", 2)[1]
    assert re.findall(r"^make (\w+)", first, flags=re.MULTILINE) == ["check", "test", "slow", "attack", "bench"]
