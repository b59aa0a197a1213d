"""Imports point one way, and what is heavy waits for the function that needs it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from itertools import combinations, permutations, product
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

HEAVY = (
    *("accelerate", "datasets", "dbt", "deltalake", "duckdb", "great_expectations", "matplotlib", "numba", "numpy"),
    *("pandas", "peft", "polars", "pyarrow", "sentence_transformers", "soda_core", "torch", "trafilatura"),
    *("transformers", "trl", "warcio"),
)
WAITS = (*HEAVY[:3], "great_expectations", "matplotlib", "peft", "sentence_transformers", "soda_core", "torch", "trl")

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LAYERS = [c for c in CONTRACTS if c["type"] == "layers"]


def heavy_after(code: str, names: tuple[str, ...]) -> list[str]:
    """Modules of those names that are loaded after some code ran in a fresh interpreter."""
    ask = f"{code}\nimport sys\nprint(*[m for m in {names!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.splitlines()[-1].split()


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("lint-imports")
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder)}
    config = str(ROOT / "pyproject.toml")
    return subprocess.run(
        [command, "--config", config, "--no-cache"], capture_output=True, text=True, cwd=folder, env=environment
    )


def test_imports_point_one_way() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages, to plant imports in."""
    for package in ("lake", "transforms", "training"):
        for file in (ROOT / package).rglob("*.py"):
            copy = tmp_path / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    return tmp_path


def plant(tree: Path, importer: str, imported: str) -> None:
    path = tree / importer.replace(".", "/")
    with (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).open("a") as out:
        out.write(f"\nimport {imported}\n")


# Of each rule that forbids imports: a module, and one that it must not import.
FORBIDDEN = {
    "transforms sees of lake": ("transforms.text.words", "lake.config"),
    "lake.cli alone imports training": ("lake.config", "training.order"),
    "lake knows no kernel": ("lake.config", "transforms.text.words"),
    "training never calls transforms": ("training.stream", "transforms.text.words"),
    "lake.storage alone knows Delta": ("lake.config", "deltalake"),
}


@pytest.mark.parametrize("rule", FORBIDDEN)
def test_each_import_rule_stops_what_it_forbids(tree: Path, rule: str) -> None:
    plant(tree, *FORBIDDEN[rule])
    done = lint_imports(tree)
    assert done.returncode == 1
    broken = [text for text in done.stdout.splitlines() if text.endswith("BROKEN") or " BROKEN " in text]
    assert [text.startswith(rule) for text in broken] == [True], done.stdout


def test_every_import_rule_is_shown_to_stop_something() -> None:
    forbidden = [c["name"] for c in CONTRACTS if c["type"] == "forbidden"]
    assert all(sum(name.startswith(rule) for rule in FORBIDDEN) == 1 for name in forbidden)
    assert {c["type"] for c in CONTRACTS} == {"forbidden", "layers"}


@pytest.mark.parametrize("contract", LAYERS, ids=[c["name"] for c in LAYERS])
def test_no_room_imports_its_neighbour_or_any_above_it(tree: Path, contract: dict[str, Any]) -> None:
    (package,) = contract["containers"]
    lines = [[f"{package}.{room}" for room in line.split(" | ")] for line in contract["layers"]]
    upwards = [pair for above, below in combinations(lines, 2) for pair in product(below, above)]
    sideways = [pair for line in lines for pair in permutations(line, 2)]
    for importer, imported in upwards + sideways:
        plant(tree, importer, imported)
    done = lint_imports(tree)
    stopped = set(re.findall(r"(\S+) is not allowed to import (\S+):", done.stdout))
    assert {*upwards, *sideways} - stopped == set(), done.stdout


@pytest.mark.parametrize("package", ["lake", "transforms"])
def test_a_new_module_without_a_place_in_the_order_is_refused(tree: Path, package: str) -> None:
    (tree / package / "newcomer.py").touch()
    done = lint_imports(tree)
    assert done.returncode == 1
    assert f"{package}.newcomer" in done.stdout + done.stderr


def test_help_of_every_command_loads_nothing_heavy() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from lake.cli import main\n"
        "def walk(command, path):\n"
        "    assert CliRunner().invoke(main, [*path, '--help']).exit_code == 0, path\n"
        "    for name, sub in getattr(command, 'commands', {}).items(): walk(sub, [*path, name])\n"
        "walk(main, [])"
    )
    assert heavy_after(code, (*HEAVY, "lake.sources.registry")) == []


def test_packages_import_without_the_optional_and_the_slow_libraries() -> None:
    code = "import lake, lake.query.query, lake.landing.land, lake.releases.build, training.cli, training.shards"
    assert heavy_after(code, WAITS) == []
