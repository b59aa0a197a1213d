"""The installed wheel does the main job away from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parent.parent.parent


def run(*command: str | Path, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LAKE_", "PYTHON"))}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run(*pip, "--wheel-dir", folder, ROOT, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; what it depends on is seen in ours, our editable install is not."""
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / "bin" / "python"
    purelib = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    Path(purelib, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps"]
    run(*pip, "--force-reinstall", wheel, cwd=folder)
    return folder / "bin"


def test_the_wheel_carries_the_whole_dbt_project(wheel: Path) -> None:
    listed = ["dbt_project.yml", "lake/profiles.yml", "models", "contracts", "transforms/macros", "tests/dbt"]
    files = [f for part in listed for f in [ROOT / part, *(ROOT / part).rglob("*")] if f.is_file()]
    wanted = {f.relative_to(ROOT).as_posix() for f in files if "__pycache__" not in f.parts}
    with zipfile.ZipFile(wheel) as archive:
        names = {n.removeprefix("lake/project/") for n in archive.namelist() if n.startswith("lake/project/")}
        assert {n for n in names if "__pycache__" not in n} == wanted
        assert "models/curated/examples.sql" in wanted
        assert any(n.endswith("licenses/LICENSE") for n in archive.namelist())


@pytest.mark.slow
def test_init_land_build_and_sql_work_outside_the_checkout(bin_folder: Path, tmp_path: Path) -> None:
    place = run(bin_folder / "python", "-c", "import lake, transforms, training; print(lake.__file__)", cwd=tmp_path)
    assert Path(place.strip()).is_relative_to(bin_folder.parent)
    turns = [{"role": "user", "content": "Is it open on Monday?"}, {"role": "assistant", "content": "Yes, from nine."}]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"messages": turns}) + "\n")
    lake = bin_folder / "lake"
    run(lake, "init", "shop", cwd=tmp_path)
    shop = tmp_path / "shop"
    run(lake, "land", "../chats.jsonl", "--kind", "traces", "--source", "support", cwd=shop)
    run(lake, "build", cwd=shop)
    said = run(lake, "sql", "select source, messages[2].content as said from train_sft", "--format", "json", cwd=shop)
    assert json.loads(said) == [{"source": "support", "said": "Yes, from nine."}]
    assert (shop / ".lake" / "refs" / "releases" / "000001.json").is_file()
    assert run(lake, "contract", "sync", "--check", cwd=shop) == ""
