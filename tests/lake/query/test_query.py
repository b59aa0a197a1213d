"""SQL reads the lake's tables and can do nothing else: every refusal leaves every byte of the lake as it was."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from lake.cli import main
from lake.errors import QueryError
from lake.query.query import Lake, connect, release_views
from lake.releases.publish import publish
from lake.schema import PACKAGE, arrow
from lake.storage.table import append
from tests.small_lake import SmallLake, rows


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    made = SmallLake.make(tmp_path_factory.mktemp("query"))
    made.build(rows(1, 2), rows(3))
    publish(made.paths, tag="gold")
    made.build(rows(1, 2, 3), rows(3))
    publish(made.paths)
    (made.root / "secret.csv").write_text("a\nsecret\n")
    return made


def fingerprints(folder: Path) -> dict[str, str]:
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*") if p.is_file()}


def refused(small: SmallLake) -> dict[str, str]:
    """Return statements that must not run, by what they try."""
    inside, outside = Lake(small.paths.home).release().snapshot("examples").files[0], small.root / "secret.csv"
    new = small.root / "new.parquet"
    copy = f"copy (select 1 as a) to '{inside}' (format parquet)"
    return {
        "copy to a file of the lake": copy,
        "copy to a new file": f"copy (select 1) to '{new}'",
        "copy in a cte": f"with x as ({copy}) select 1",
        "copy in a cte that is read": f"with x as ({copy}) select * from x",
        "copy in a subquery": f"select * from (with x as ({copy}) select 1)",
        "copy in a scalar subquery": f"select (with x as ({copy}) select 1)",
        "insert": "insert into examples select * from examples",
        "insert in a cte": "with x as (insert into examples select * from examples returning *) select * from x",
        "delete": "delete from examples",
        "delete in a cte": "with x as (delete from examples returning *) select * from x",
        "delete in a subquery": "select (with x as (delete from examples returning *) select count(*) from x)",
        "update in a cte": "with x as (update examples set text = '' returning *) select * from x",
        "explain analyze copy": f"explain analyze {copy}",
        "two statements": "select 1; select 2",
        "a select and a copy": f"select 1; {copy}",
        "sql as text": f"select * from query('{copy.replace(chr(39), chr(39) * 2)}')",
        "a parsed tree as text": (
            f"select * from json_execute_serialized_sql(json_serialize_sql('{copy.replace(chr(39), chr(39) * 2)}'))"
        ),
        "read_csv outside": f"select * from read_csv('{outside}')",
        "read_text outside": f"select * from read_text('{outside}')",
        "read_blob of a file of the lake": f"select * from read_blob('{inside}')",
        "a file by its name": f"select * from '{outside}'",
        "glob": f"select * from glob('{small.root}/*')",
        "sniff_csv": f"select * from sniff_csv('{outside}')",
        "attach": f"attach '{small.root}/other.db'",
        "pragma": "pragma threads = 1",
        "set": "set memory_limit = '1GB'",
        "reset": "reset all",
        "install": "install httpfs",
        "load": "load httpfs",
        "getenv": "select getenv('HOME')",
        "secrets": "select * from duckdb_secrets()",
        "log to a file": f"select * from enable_logging(storage = 'file', storage_path = '{small.root}/log')",
        "pivot": "pivot examples on source using count(*)",
        "create": "create table t as select 1",
        "call": "call pragma_version()",
        "export": f"export database '{small.root}/dump'",
        "prepare": "prepare q as select 1",
        "nothing": "",
        "no sql": "give me all",
        "a python variable": "select * from small",
    }


def test_each_statement_that_could_do_more_than_read_is_refused_and_changes_no_byte(small: SmallLake) -> None:
    before = fingerprints(small.root)
    lake, ran = Lake(small.paths.home), []
    for what, statement in refused(small).items():
        try:
            lake.sql(statement)
            ran.append(what)
        except QueryError as error:
            assert str(error).strip(), what
    assert ran == []
    assert fingerprints(small.root) == before


def test_the_locked_connection_alone_keeps_files_settings_and_extensions_out(small: SmallLake) -> None:
    """The second wall, behind the check of the parsed tree; only COPY to a view's own file passes it."""
    outside = small.root / "secret.csv"
    for statement in (
        f"select * from read_csv('{outside}')",
        f"select * from read_text('{outside}')",
        f"select * from glob('{small.root}/*')",
        f"copy (select 1) to '{small.root}/new.csv'",
        f"attach '{small.root}/other.db'",
        "set enable_external_access = true",
        "set allowed_paths = ['/etc/passwd']",
        "set lock_configuration = false",
        "install httpfs",
        "select * from small",
    ):
        connection = connect(release_views(Lake(small.paths.home), None))
        with pytest.raises(duckdb.Error):
            connection.execute(statement).fetchall()
        connection.close()


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("pivot examples on source", "PIVOT"),
        ("copy examples to 'f'", "only a SELECT"),
        ("select 1; select 2", "2 statements"),
        ("with x as (delete from examples returning *) select * from x", "holds a DELETE"),
        ("select * from read_csv('f')", "table function read_csv is not allowed"),
        ("select * from exampels", "Release 2 has examples, hits"),
        ("selec 1", "syntax error"),
    ],
)
def test_a_refusal_says_why(small: SmallLake, statement: str, says: str) -> None:
    with pytest.raises(QueryError, match=says):
        Lake(small.paths.home).sql(statement)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("select count(*) from examples", [(3,)]),
        ("from hits select text", [("text 3",)]),
        ("with recursive n as (select 1 as i union all select i + 1 from n where i < 3) select sum(i) from n", [(6,)]),
        ("select count(*) from examples union all select count(*) from hits order by 1", [(1,), (3,)]),
        ("values (1), (2)", [(1,), (2,)]),
        ("select (select max(example_id) from examples)", [("e000003",)]),
        ("select e.text from examples e, lateral (select e.text) t order by 1 limit 1", [("text 1",)]),
        ("select unnest([1, 2])", [(1,), (2,)]),
        ("select column_name from (describe examples) limit 1", [("example_id",)]),
        ("select name from (show tables) order by 1", [("examples",), ("hits",)]),
        ("select count(*) from main.examples e join raw.traces t on e.text = t.record_id", [(0,)]),
        ("select 'with x as (copy (select 1) to ''f'') select 1'", [("with x as (copy (select 1) to 'f') select 1",)]),
    ],
)
def test_everything_that_reads_runs(small: SmallLake, statement: str, expected: list[tuple[object, ...]]) -> None:
    assert Lake(small.paths.home).sql(statement).rows() == expected


def test_a_release_is_read_by_number_or_tag_and_the_workspace_as_it_was_built(small: SmallLake, tmp_path: Path) -> None:
    lake = Lake(small.paths.home)
    count = "select count(*) from examples"
    assert [lake.sql(count, release=r).item() for r in (1, "1", "gold", 2, None)] == [2, 2, 2, 3, 3]
    own = SmallLake.make(tmp_path, "own", Path(small.paths.home))
    own.build(rows(1, 2, 3, 4, 5))
    mine = Lake(small.paths.home)
    mine.paths = own.paths
    assert mine.sql(count, workspace=True).item() == 5 and mine.sql(count).item() == 3
    assert mine.sql("select count(*) from raw.traces", workspace=True).item() == 0
    with pytest.raises(QueryError, match="one of them"):
        mine.sql(count, release=1, workspace=True)
    for statement in ("delete from examples", f"select * from read_csv('{small.root / 'secret.csv'}')"):
        with pytest.raises(QueryError):
            mine.sql(statement, workspace=True)


def test_raw_and_log_tables_are_typed_and_empty_before_anything_landed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for name in ("raw/traces", "raw/web", "raw/landings", "log/runs", "log/export_rows"):
        frame = lake.sql(f"select * from {name.replace('/', '.')}")
        assert frame.columns == arrow(PACKAGE, name).names and frame.height == 0
    assert lake.sql("select * from raw.rejects").columns == arrow(PACKAGE, "raw/rejects").names
    with pytest.raises(QueryError, match="no release yet"):
        lake.sql("select * from examples")


def test_a_reject_no_longer_counts_once_a_record_follows_in_its_place(tmp_path: Path) -> None:
    def record(number: int, previous: str | None, position: int) -> dict[str, object]:
        return dict.fromkeys(arrow(PACKAGE, "raw/traces").names) | {
            "record_id": f"r{number}", "source": "s", "format": "f", "path": "a.jsonl", "position": position,
            "previous_id": previous, "payload": "{}", "payload_hash": "h", "options": "{}", "batch_id": "b",
            "landed_at": 0,
        }  # fmt: skip

    def reject(name: str, previous: str | None, path: str, position: int) -> dict[str, object]:
        return {
            "reject_id": name, "kind": "traces", "source": "s", "format": "f", "path": path, "position": position,
            "previous_id": previous, "reason": "no JSON", "payload": b"{", "payload_bytes": 1, "batch_id": "b",
            "landed_at": 0,
        }  # fmt: skip

    import pyarrow as pa

    traces = [record(1, None, 1), record(2, "r1", 2)]
    rejects = [
        reject("superseded", "r1", "a.jsonl", 2),
        reject("counts", "r2", "a.jsonl", 3),
        reject("first line, superseded", None, "a.jsonl", 1),
        reject("first line, counts", None, "b.jsonl", 1),
    ]
    for name, content in (("traces", traces), ("rejects", rejects)):
        schema = arrow(PACKAGE, f"raw/{name}")
        append(f"{tmp_path}/raw/{name}", schema, pa.Table.from_pylist(content, schema=schema))
    lake = Lake(tmp_path)
    query = "select reject_id from {} order by 1"
    assert lake.sql(query.format("raw.rejects")).rows() == [("counts",), ("first line, counts",)]
    assert lake.sql("select count(*) from raw.all_rejects").item() == 4


def test_the_command_writes_the_same_rows_in_every_format(small: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_HOME", small.paths.home)
    query = (
        "select example_id, [{'a': 1, 'b': null}] as n, 2.5 as x, sum(1)::hugeint as s, 'NaN'::double as d "
        "from examples group by 1 order by 1"
    )

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(main, ["sql", query, *arguments], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    expected = [
        {"example_id": f"e00000{n}", "n": [{"a": 1, "b": None}], "x": 2.5, "s": 1, "d": None} for n in (1, 2, 3)
    ]
    assert json.loads(run("--format", "json")) == expected
    assert run("--format", "csv").splitlines()[:2] == [
        "example_id,n,x,s,d",
        'e000001,"[{""a"": 1, ""b"": null}]",2.5,1,',
    ]
    out = small.root / "out.parquet"
    run("--format", "parquet", "--out", str(out))
    assert pq.read_table(out).column("n").to_pylist() == [[{"a": 1, "b": None}]] * 3
    out.unlink()
    table = run()
    assert table.splitlines()[0].split() == ["example_id", "n", "x", "s", "d"] and table.endswith("(3 rows)\n")


def test_an_empty_result_is_an_empty_array(small: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_HOME", small.paths.home)
    done = CliRunner().invoke(main, ["sql", "select * from examples where false", "--format", "json"])
    assert json.loads(done.output) == []


def test_the_command_refuses_with_exit_status_2(small: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_HOME", small.paths.home)
    done = CliRunner().invoke(main, ["sql", "drop view examples"])
    assert done.exit_code == 2 and "QueryError" in done.stderr


def test_sums_of_integers_come_as_integers(small: SmallLake) -> None:
    frame = Lake(small.paths.home).sql("select sum(length(text)) as n from examples")
    assert frame.schema["n"].is_integer() and frame.item() == 18
    assert isinstance(frame, pl.DataFrame)


def test_a_home_with_a_space_and_a_quote_is_read(tmp_path: Path) -> None:
    home = tmp_path / "Ann's lake é"
    made = SmallLake.make(tmp_path, "odd", home)
    made.build(rows(1))
    publish(made.paths)
    assert Lake(home).sql("select count(*) from examples").item() == 1
