"""A project's own contracts are those of landing, dbt, audit, publish, SQL and training alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from click.testing import CliRunner

from lake.cli import main
from lake.config import LakePaths, lake_paths
from lake.contract import sync
from lake.dbt_plugin import prepare
from lake.errors import ContractError, NotFoundError
from lake.init import init
from lake.landing.land import land
from lake.query.query import Lake
from lake.releases.build import build
from lake.schema import PACKAGE, arrow, contract
from lake.storage.table import snapshot
from training.shards import export

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

Columns = list[dict[str, Any]]
LOGS = ("raw/traces", "raw/landings", "raw/rejects", "raw/amendments", "log/exports", "log/export_rows")
TENANT = {"name": "tenant", "logicalType": "string", "description": "Customer whose rows these are"}
TAGS = {
    "name": "tags",
    "logicalType": "array",
    "description": "Labels",
    "items": {"logicalType": "object", "properties": [{"name": "label", "logicalType": "string", "required": True}]},
}


def edit(project: Path, table: str, change: Callable[[Columns], object]) -> None:
    """Change the columns of a contract, as somebody does in an editor."""
    path = project / "contracts" / f"{table}.yaml"
    body = yaml.safe_load(path.read_text())
    change(body["schema"][0]["properties"])
    path.write_text(yaml.safe_dump(body, sort_keys=False))


def with_new_columns(columns: Columns) -> None:
    """Put a nullable column first, and a nested one in the middle."""
    columns.insert(0, TENANT)
    columns.insert(3, TAGS)


def column(columns: Columns, name: str) -> dict[str, Any]:
    return next(c for c in columns if c["name"] == name)


def write_chats(folder: Path) -> Path:
    turns = [{"role": "user", "content": "Is it open on Monday?"}, {"role": "assistant", "content": "From nine on."}]
    (folder / "chats.jsonl").write_text(json.dumps({"messages": turns}) + '\n{"messages": [\n')
    return folder / "chats.jsonl"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project as `lake init` lays it out, with its lake below it."""
    init(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.delenv("LAKE_HOME", raising=False)
    monkeypatch.delenv("LAKE_WORKSPACE", raising=False)
    return tmp_path / "shop"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakePaths]:
    """A project whose contracts of what landing and exports write have two more columns, from landing to export."""
    pytest.importorskip("soda_duckdb", reason="the extra soda is not installed")
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        init(folder / "shop")
        patch.chdir(folder / "shop")
        patch.delenv("LAKE_HOME", raising=False)
        patch.delenv("LAKE_WORKSPACE", raising=False)
        paths = lake_paths()
        for table in LOGS:
            edit(paths.project, table, with_new_columns)
        sync(paths.project)
        chats = write_chats(folder)
        land([chats], "traces", "support")
        land([chats], "traces", "support", license="MIT", amend=True)
        build(paths)
        export("train_sft", folder / "shards", lake=Lake())
        yield paths


@pytest.mark.parametrize("table", LOGS)
def test_a_nullable_column_that_the_code_does_not_fill_is_null_in_every_row(built: LakePaths, table: str) -> None:
    stored = snapshot(built.table(*table.split("/")))
    assert stored is not None and stored.schema == arrow(built.project, table)
    assert stored.schema.names[0] == "tenant" and stored.schema.names[3] == "tags"
    rows = Lake(built.home).sql(f"select * from {table.replace('/', '.')}")
    assert rows.height > 0
    assert rows.select("tenant", "tags").null_count().row(0) == (rows.height, rows.height)


def test_dbt_audit_and_publish_take_the_same_contract(built: LakePaths) -> None:
    sources = yaml.safe_load((built.project / "models/raw/raw.yml").read_text())["sources"][0]["tables"]
    (traces,) = [table for table in sources if table["name"] == "traces"]
    names = arrow(built.project, "raw/traces").names
    assert [c["name"] for c in traces["columns"]] == names
    lake = Lake(built.home)
    assert lake.sql("select * from raw.traces", workspace=True).columns == names
    assert lake.release().tables["train_sft"].rows == 1
    assert sync(built.project, check=True) == []


def test_an_edited_contract_is_seen_at_once_by_landing_dbt_and_sql(shop: Path, tmp_path: Path) -> None:
    assert "tenant" not in arrow(shop, "raw/traces").names
    edit(shop, "raw/traces", with_new_columns)
    names = arrow(shop, "raw/traces").names
    assert names == [c["name"] for c in contract(shop, "raw/traces")["schema"][0]["properties"]]
    assert Lake().sql("select * from raw.traces").columns == names
    with duckdb.connect() as connection:
        prepare(connection, str(tmp_path / "lake"), shop)
        assert connection.sql("from raw.traces").columns == names
    land([write_chats(tmp_path)], "traces", "support")
    stored = snapshot(lake_paths().table("raw", "traces"))
    assert stored is not None and stored.schema.names == names


BROKEN = [  # table, change, what the message says
    (
        "raw/traces",
        lambda columns: columns.append({**TENANT, "required": True}),
        r"contracts/raw/traces\.yaml requires tenant, which nothing fills; expected .* nullable\. Remove `required",
    ),
    (
        "raw/traces",
        lambda columns: column(columns, "position").update(logicalType="string"),
        r"contracts/raw/traces\.yaml: column position is string, expected int64.*Restore it there",
    ),
    (
        "raw/traces",
        lambda columns: columns.append(
            {"name": "extra", "logicalType": "object", "properties": [{**TENANT, "required": True}]}
        ),
        r"contracts/raw/traces\.yaml requires extra\.tenant, which nothing fills; expected .* nullable\.",
    ),
    (
        "raw/landings",
        lambda columns: columns.remove(column(columns, "sha256")),
        r"contracts/raw/landings\.yaml: column sha256 is absent, expected string.*Restore it there",
    ),
    (
        "raw/rejects",
        lambda columns: column(columns, "payload").pop("physicalType"),
        r"contracts/raw/rejects\.yaml: column payload is string, expected binary.*Restore it there",
    ),
    (
        "raw/traces",
        lambda columns: columns.append({**TENANT, "requird": True}),
        r"contracts/raw/traces\.yaml: tenant has an unknown key 'requird'\. Mend it there",
    ),
]


@pytest.mark.parametrize(("table", "change", "message"), BROKEN)
def test_a_contract_that_landing_cannot_fill_stops_landing_dbt_and_sync_before_a_byte_is_written(
    shop: Path, tmp_path: Path, table: str, change: Callable[[Columns], object], message: str
) -> None:
    edit(shop, table, change)
    with pytest.raises(ContractError, match=message):
        land([write_chats(tmp_path)], "traces", "support")
    with duckdb.connect() as connection, pytest.raises(ContractError, match=message):
        prepare(connection, str(tmp_path / "lake"), shop)
    before = (shop / "models/raw/raw.yml").read_bytes()
    result = CliRunner().invoke(main, ["contract", "sync"])
    assert result.exit_code == ContractError.exit_code and "ContractError: contracts/raw/" in result.output
    assert (shop / "models/raw/raw.yml").read_bytes() == before
    assert not (shop / ".lake").exists()


@pytest.mark.parametrize("table", ["raw/traces", "raw/landings", "raw/rejects"])
def test_a_lake_of_the_old_contract_is_refused_by_landing_and_read_by_dbt_and_sql(
    shop: Path, tmp_path: Path, table: str
) -> None:
    chats, name = write_chats(tmp_path), table.split("/")[1]
    land([chats], "traces", "support")
    uri = lake_paths().table("raw", name)
    before = snapshot(uri)
    edit(shop, table, with_new_columns)
    with chats.open("a") as file:
        file.write('{"messages": [{"role": "user", "content": "And now?"}]}\n')
    message = rf"raw/{name} does not have its contract's schema \(tenant: absent instead of string.*another LAKE_HOME"
    with pytest.raises(ContractError, match=message):
        land([chats], "traces", "support")
    assert snapshot(uri) == before
    assert Lake().sql(f"select count(*) as n from raw.{name}").item() == 1
    with duckdb.connect() as connection:
        prepare(connection, lake_paths().home, shop)
        assert connection.sql(f"select tenant, tags from raw.{name}").fetchall() == [(None, None)]


def test_a_project_without_a_contract_is_told_where_a_copy_lies(shop: Path, tmp_path: Path) -> None:
    (shop / "contracts/raw/amendments.yaml").unlink()
    own = PACKAGE / "contracts/raw/amendments.yaml"
    with pytest.raises(NotFoundError, match=rf"no contract {shop}/contracts/raw/amendments\.yaml.*Copy {own} there"):
        land([write_chats(tmp_path)], "traces", "support")
