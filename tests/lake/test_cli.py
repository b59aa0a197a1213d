"""The command's surface: what it is called, that it explains itself, and that README knows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import lake
from lake.cli import main, print_json
from lake.errors import BusyError, ConflictError, LakeError

ROOT = Path(__file__).resolve().parent.parent.parent
# Changing this list is changing what users' scripts call.
SURFACE = {
    "audit": "--allow-empty --json",
    "build": "--allow-empty --full-refresh --json --no-publish --rebase --tag",
    "contract sync": "--check --json",
    "demo": "--dir --steps",
    "diff": "FIRST SECOND --json",
    "export": "TABLE --format --json --out --release --shards",
    "gc": "--dry-run --json --keep-last",
    "init": "FOLDER",
    "land": (
        "PATHS --amend --format --generator --generator-version --json --kind --license --parent-id "
        "--prompt-hash --prompt-id --root --seed --source --split --suite --temperature --top-p "
        "--verifier --verifier-verdict"
    ),
    "publish": "--allow-empty --force --json --tag",
    "releases": "--json",
    "runs": "--json",
    "sql": "QUERY --format --out --release --workspace",
    "tag": "NAME RELEASE --force",
    "trace": "ROW_ID --json --release",
    "train sft": "JOB --json",
}
NAMES = ["__version__", "open"]


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its whole name."""
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def flags(command: click.Command) -> set[str]:
    arguments = {p.human_readable_name for p in command.params if isinstance(p, click.Argument)}
    options = {o for p in command.params if isinstance(p, click.Option) for o in [*p.opts, *p.secondary_opts]}
    return arguments | options


def test_commands_and_their_flags_are_the_committed_ones() -> None:
    assert {name: flags(command) for name, command in commands()} == {n: set(f.split()) for n, f in SURFACE.items()}


def test_public_names_are_the_committed_ones() -> None:
    assert sorted(lake.__all__) == NAMES
    assert all(hasattr(lake, name) for name in NAMES)


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=[n for n, _ in commands()])
def test_each_command_and_each_option_has_help(name: str, command: click.Command) -> None:
    shown = CliRunner().invoke(main, [*name.split(), "--help"])
    assert shown.exit_code == 0
    assert command.help and command.help.strip().endswith((".", "?")), name
    silent = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]
    assert silent == []


@pytest.mark.parametrize("name", [n for n, _ in commands()])
def test_each_command_stands_in_readme(name: str) -> None:
    table = re.findall(r"^\| `lake ([^`]*)`", (ROOT / "README.md").read_text("utf-8"), flags=re.MULTILINE)
    assert any(entry == name or entry.startswith(name + " ") for entry in table), name


def test_readme_lists_no_command_that_is_not_there() -> None:
    names = [n for n, _ in commands()]
    table = re.findall(r"^\| `lake ([^`]*)`", (ROOT / "README.md").read_text("utf-8"), flags=re.MULTILINE)
    assert [e for e in table if not any(e == n or e.startswith(n + " ") for n in names)] == []


def test_version_is_the_package_s() -> None:
    assert CliRunner().invoke(main, ["--version"]).output.strip().endswith(lake.__version__)


@pytest.mark.parametrize("arguments", [["nothing"], ["land"], ["land", "x", "--kind", "music", "--source", "s"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, arguments).exit_code == 2


def test_a_crash_of_ours_exits_with_3_and_shows_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr("lake.query.query.Lake.releases", crash)
    done = CliRunner().invoke(main, ["releases"])
    assert done.exit_code == 3
    assert "ValueError: a bug" in done.stderr
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(("error", "code"), [(BusyError, 2), (ConflictError, 1)])
def test_others_in_the_way_of_a_commit_and_of_a_release_have_codes_of_their_own(
    monkeypatch: pytest.MonkeyPatch, error: type[LakeError], code: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error("others were first")

    monkeypatch.setattr("lake.query.query.Lake.releases", refuse)
    done = CliRunner().invoke(main, ["releases"])
    assert (done.exit_code, done.stderr) == (code, f"{error.__name__}: others were first\n")


def test_json_on_stdout_has_values_as_lake_sql_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"at": datetime(2026, 1, 2, tzinfo=UTC), "rows": [Decimal("2"), float("nan")], "where": Path("é")})
    assert capsys.readouterr().out == '{"at": "2026-01-02T00:00:00+00:00", "rows": [2, null], "where": "é"}\n'


def test_a_result_for_a_folder_that_is_not_there_exits_with_2(home: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["sql", "select 1", "--format", "csv", "--out", str(tmp_path / "no" / "x.csv")])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no is no folder" in done.stderr
