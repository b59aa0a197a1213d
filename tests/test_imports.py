"""Imports point one way, and what is heavy waits for the function that needs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

HEAVY = (
    *("accelerate", "datasets", "dbt", "deltalake", "duckdb", "great_expectations", "matplotlib", "numba", "numpy"),
    *("pandas", "peft", "polars", "pyarrow", "sentence_transformers", "soda_core", "torch", "trafilatura"),
    *("transformers", "trl", "warcio"),
)
WAITS = (*HEAVY[:3], "great_expectations", "matplotlib", "peft", "sentence_transformers", "soda_core", "torch", "trl")


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


@pytest.mark.parametrize(
    ("module", "line", "rule"),
    [
        ("transforms/text/words.py", "import lake.config", "transforms sees of lake only"),
        ("lake/record_keys/chats.py", "import lake.schema", "the rooms of lake"),
        ("lake/times.py", "import lake.schema", "the rooms of lake"),
        ("lake/config.py", "import training.order", "lake.cli alone imports training"),
        ("lake/config.py", "import transforms.text.words", "lake knows no kernel"),
        ("training/stream.py", "import transforms.text.words", "training never calls transforms"),
        ("lake/config.py", "import deltalake", "lake.storage alone knows Delta"),
        ("lake/releases/gc.py", "import lake.query.query", "the rooms of lake"),
        ("lake/storage/table.py", "import lake.kernels.memo", "the rooms of lake"),
        ("lake/kernels/memo.py", "import lake.landing.land", "the rooms of lake"),
        ("transforms/text/words.py", "import transforms.ngrams.contamination", "the rooms of transforms"),
    ],
)
def test_each_import_rule_stops_what_it_forbids(tmp_path: Path, module: str, line: str, rule: str) -> None:
    for package in ("lake", "transforms", "training"):
        for file in (ROOT / package).rglob("*.py"):
            copy = tmp_path / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    with (tmp_path / module).open("a") as out:
        out.write(f"\n{line}\n")
    done = lint_imports(tmp_path)
    assert done.returncode == 1
    broken = [text for text in done.stdout.splitlines() if text.endswith("BROKEN") or " BROKEN " in text]
    assert [text.startswith(rule) for text in broken] == [True], done.stdout


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
