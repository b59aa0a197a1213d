"""The loader of contracts refuses what is none, and reads a file again where it changed."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from lake.errors import ContractError, NotFoundError
from lake.schema import arrow, contract, tables
from tests.lake.test_odcs import sound


def write(project: Path, text: str) -> Path:
    path = project / "contracts" / "x" / "t.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_that_is_no_yaml_or_no_contract_is_an_error_that_names_it(tmp_path: Path) -> None:
    write(tmp_path, "a: [")
    with pytest.raises(ContractError, match=r"contracts/x/t\.yaml is not YAML"):
        contract(tmp_path, "x/t")
    write(tmp_path, yaml.safe_dump({**sound(), "id": "y.t"}))
    with pytest.raises(ContractError, match=r"id is 'y\.t'.*nothing was written"):
        contract(tmp_path, "x/t")
    with pytest.raises(ContractError, match=r"id is 'y\.t'.*nothing was written"):
        arrow(tmp_path, "x/t")


def test_a_missing_contract_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no contract .*contracts/x/t\.yaml; expected one .* Write it there\."):
        contract(tmp_path, "x/t")


def test_a_file_is_parsed_once_and_again_where_it_changed(tmp_path: Path) -> None:
    path = write(tmp_path, yaml.safe_dump(sound()))
    first = contract(tmp_path, "x/t")
    assert contract(tmp_path, "x/t") is first
    assert arrow(tmp_path, "x/t") == pa.schema([("a", pa.string())])
    time = path.stat().st_mtime_ns
    write(tmp_path, yaml.safe_dump(sound()).replace("name: a", "name: b"))  # as long as before
    os.utime(path, ns=(time + 1, time + 1))
    assert arrow(tmp_path, "x/t") == pa.schema([("b", pa.string())])
    write(tmp_path, yaml.safe_dump(sound()).replace("name: a", "name: abc"))
    os.utime(path, ns=(time + 1, time + 1))
    assert arrow(tmp_path, "x/t") == pa.schema([("abc", pa.string())])


def test_projects_do_not_see_each_other(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, yaml.safe_dump(sound()).replace("name: a", f"name: {name}"))
    assert [arrow(tmp_path / n, "x/t").names for n in ("one", "two")] == [["one"], ["two"]]
    assert tables(tmp_path / "one") == tables(tmp_path / "one", "x") == ["x/t"] and tables(tmp_path / "one", "y") == []
