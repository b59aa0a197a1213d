"""`lake land` and `lake init` as a user calls them, and places that are no local files."""

from __future__ import annotations

import functools
import gzip
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from lake.cli import main
from lake.dbt_plugin import prepare
from lake.errors import UsageError
from lake.landing.land import land
from lake.query.query import Lake
from tests.conftest import ROOT
from tests.lake.landing.landed import rows

CHAT = json.dumps({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}).encode()


def lake(*args: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(main, [str(a) for a in args])
    return found.exit_code, found.stdout, found.stderr


def test_json_has_exactly_the_counts_and_rejects_are_no_error(home: Path, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(CHAT + b"\n\n{broken")
    code, out, _ = lake("land", tmp_path / "x.jsonl", "--kind", "traces", "--source", "s", "--json")
    said = json.loads(out)
    assert list(said) == ["read", "landed", "already", "rejected", "skipped", "bytes", "seconds"]
    assert (code, [said[k] for k in list(said)[:6]]) == (0, [3, 1, 0, 1, 1, len(CHAT) + 9])


def test_plain_output_says_the_sum_and_the_files_not_recognised(home: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/x.jsonl").write_bytes(CHAT)
    (tmp_path / "in/y.bin").write_bytes(b"\0\1")
    code, out, _ = lake("land", tmp_path / "in", "--kind", "traces", "--source", "s")
    assert code == 0
    assert out.startswith("read 1 = landed 1 + already 0 + rejected 0 + skipped 0\n2 files")
    assert "not recognised: 1 files\n  y.bin: found bytes that are no UTF-8 text" in out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nowhere", "--kind", "traces", "--source", "s"], "nowhere names no file"),
        (["x.bin", "--kind", "traces", "--source", "s"], "x.bin is of no known format"),
        (["x.bin", "--kind", "web", "--source", "s", "--format", "alpaca"], "format alpaca lands as synthetic"),
        (["x.bin", "--kind", "traces", "--source", " "], "--source is empty"),
        (["nosuch://x/y", "--kind", "traces", "--source", "s"], "nosuch"),
    ],
)
def test_wrong_usage_is_two_and_one_line(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.bin").write_bytes(b"\0\1\2")
    code, _, err = lake("land", *args)
    assert (code, len(err.strip().splitlines())) == (2, 1)
    assert said in err


def test_provenance_options_are_facts_of_the_records(home: Path, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(CHAT)
    given = (
        "--license CC0-1.0 --generator g --generator-version 2 --prompt-id p --prompt-hash h --seed 7 "
        "--temperature 0.5 --top-p 0.9 --parent-id a --parent-id b "
        "--verifier v --verifier-verdict ok --suite q --split test"
    )
    code, _, err = lake("land", tmp_path / "x.jsonl", "--kind", "synthetic", "--source", "s", *given.split())
    assert (code, err) == (0, "")
    [(license_, options)] = rows(home, "synthetic", "license, options")
    expected = {
        "generator_model": "g", "generator_version": "2", "parent_ids": ["a", "b"], "prompt_hash": "h",
        "prompt_id": "p", "seed": 7, "split": "test", "suite": "q", "temperature": 0.5, "top_p": 0.9, "verifier": "v",
        "verifier_verdict": "ok",
    }  # fmt: skip
    assert (license_, json.loads(options), list(json.loads(options))) == ("CC0-1.0", expected, sorted(expected))


def test_a_glob_takes_what_it_matches(home: Path, tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl.gz", "c.txt"):
        data = CHAT + name.encode().join([b"\n", b"\n"])
        (tmp_path / name).write_bytes(gzip.compress(CHAT) if name.endswith("gz") else data)
    found = land([tmp_path / "*.jsonl*"], "traces", "s")
    assert (found.files, found.landed, found.already) == (2, 1, 1)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "x.jsonl.gz").write_bytes(gzip.compress(CHAT + b"\n" + CHAT))
    (folder / "p.html").write_bytes(b"<!doctype html><html><body><p>page</p></body></html>")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_files_land_from_http(home: Path, served: str) -> None:
    pytest.importorskip("aiohttp")
    found = land([f"{served}/x.jsonl.gz"], "traces", "s")
    assert (found.read, found.landed) == (2, 2)
    assert land([f"{served}/x.jsonl.gz"], "traces", "s").already == 2
    land([f"{served}/p.html"], "web", "w")
    assert rows(home, "web", "natural_key, format") == [(f"{served}/p.html", "html")]
    with pytest.raises(UsageError, match=r"none\.jsonl cannot be looked at"):
        land([f"{served}/none.jsonl"], "traces", "s")


@pytest.mark.integration
def test_files_land_from_s3_and_a_lake_lies_there(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    try:
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        files = s3fs.S3FileSystem()
        files.mkdir("inbox")
        files.pipe("inbox/logs/a.jsonl", CHAT + b"\n" + CHAT)
        files.pipe("inbox/logs/b.jsonl.gz", gzip.compress(CHAT + b"\n" + CHAT + b"\n" + CHAT))
        found = land(["s3://inbox/logs"], "traces", "s")
        assert (found.read, found.landed, found.already) == (5, 3, 2)
        assert land(["s3://inbox/logs/*.gz"], "traces", "s").already == 3
        assert rows(home, "landings", "distinct root") == [("s3://inbox/logs",)]
        assert {p for (p,) in rows(home, "landings", "path")} == {"a.jsonl", "b.jsonl"}
        files.mkdir("lakehome")
        assert land(["s3://inbox/logs"], "traces", "s", home="s3://lakehome/x").landed == 3
        assert land(["s3://inbox/logs"], "traces", "s", home="s3://lakehome/x").already == 5
        monkeypatch.setenv("LAKE_WORKSPACE", str(tmp_path / "one.duckdb"))
        with duckdb.connect(tmp_path / "one.duckdb") as connection:
            prepare(connection, "s3://lakehome/x", ROOT)
        for workspace in (False, True):
            counted = Lake("s3://lakehome/x").sql("select count(*) from raw.traces", workspace=workspace)
            assert counted.item() == 3
    finally:
        server.stop()


def test_init_lays_out_a_project_and_overwrites_nothing(tmp_path: Path) -> None:
    code, out, _ = lake("init", tmp_path / "mine")
    assert code == 0
    assert "lake build" in out
    for part in ("dbt_project.yml", "models", "contracts/raw/traces.yaml", "lake/profiles.yml", "tests/dbt"):
        assert (tmp_path / "mine" / part).exists(), part
    assert list((tmp_path / "mine/transforms/macros").glob("*.sql"))
    before = (tmp_path / "mine/dbt_project.yml").read_bytes()
    (tmp_path / "mine/models").rename(tmp_path / "mine/away")
    code, _, err = lake("init", tmp_path / "mine")
    assert code == 2
    assert "already has dbt_project.yml" in err
    assert not (tmp_path / "mine/models").exists()
    assert (tmp_path / "mine/dbt_project.yml").read_bytes() == before


def test_progress_is_a_line_where_there_is_no_terminal(home: Path, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes((CHAT + b"\n") * 3000)
    code = (
        "import lake.progress as p; p.EVERY_SECONDS = 0.0\n"
        "import sys; from lake.cli import main; sys.argv = ['lake', *sys.argv[1:]]; main()"
    )
    call = [sys.executable, "-c", code, "land", str(tmp_path / "x.jsonl"), "--kind", "traces", "--source", "s"]
    done = subprocess.run(call, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0
    assert "(100%), x.jsonl" in done.stderr
