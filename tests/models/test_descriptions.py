"""Every model says what it holds, and its grain."""

from __future__ import annotations

from typing import Any

import yaml

from tests.dbt_lake import ROOT

MODELS = ROOT / "models"


def described() -> dict[str, dict[str, Any]]:
    """Models by name, as dbt's property files have them."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    files = [yaml.load(file.read_bytes(), Loader=loader) for file in sorted(MODELS.rglob("*.yml"))]
    models = [model for properties in files for model in properties.get("models", [])]
    assert len(models) == len({model["name"] for model in models})
    return {model["name"]: model for model in models}


def test_every_model_has_a_description_that_ends_with_its_grain() -> None:
    names = {file.stem for ending in ("sql", "py") for file in MODELS.rglob(f"*.{ending}")}
    descriptions = {name: model.get("description", "") for name, model in described().items()}
    assert {*descriptions} == names
    grains = {name: text.rstrip().removesuffix(".").rsplit(". ", 1)[-1] for name, text in descriptions.items()}
    assert {name: grain for name, grain in grains.items() if not grain.startswith("One row per ")} == {}


def test_staging_models_are_described_beside_them_by_hand() -> None:
    # Folders that hold a file: a checkout may keep an empty one of a room that was renamed.
    for folder in sorted({path.parent for path in (MODELS / "staging").rglob("*.*") if path.is_file()}):
        file = folder / f"_{folder.name}__models.yml"
        models = yaml.safe_load(file.read_text("utf-8"))["models"]
        assert {model["name"] for model in models} == {path.stem for path in folder.glob("*.sql")}, file
