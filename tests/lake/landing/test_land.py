"""Landing keeps every byte, accounts for every record, and adds nothing twice."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake.errors import FormatError, SourceError, UsageError
from lake.identity import H
from lake.landing import checks, containers, reading, streams
from lake.landing.inputs import InputFile
from lake.landing.land import Summary, land
from tests.effort import examples
from tests.lake.landing.landed import content, rows


def chat(text: str) -> bytes:
    return json.dumps(
        {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]}
    ).encode()


def counts(summary: Summary) -> tuple[int, int, int, int, int]:
    return summary.read, summary.landed, summary.already, summary.rejected, summary.skipped


Lander = Callable[..., Summary]


@pytest.fixture
def put(home: Path, tmp_path: Path) -> Lander:
    """Write some files below a folder and land the folder."""
    folder = tmp_path / "in"

    def put(files: dict[str, bytes], **how: Any) -> Summary:
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return land([how.pop("path", folder)], how.pop("kind", "traces"), how.pop("source", "s"), **how)

    return put


def test_ids_are_a_chain_over_the_file_rejects_too(put: Lander, home: Path) -> None:
    lines = [chat("a"), b"{broken", b"", chat("b") + b" "]
    assert counts(put({"x.jsonl": b"\xef\xbb\xbf" + b"\r\n".join(lines)})) == (4, 2, 0, 1, 1)
    first = H("record", "traces", "s", "", chat("a"))
    broken = H("record", "traces", "s", first, b"{broken")
    last = H("record", "traces", "s", broken, chat("b") + b" ")
    found = rows(home, "traces", "position, record_id, previous_id, payload, payload_hash, format, path")
    payloads = [chat("a"), chat("b") + b" "]
    assert found == [
        (1, first, None, payloads[0].decode(), H(payloads[0]), "openai_chat", "x.jsonl"),
        (4, last, broken, payloads[1].decode(), H(payloads[1]), "openai_chat", "x.jsonl"),
    ]
    assert rows(home, "rejects", "reject_id, previous_id, position, payload, payload_bytes") == [
        (broken, first, 2, b"{broken", 7)
    ]
    assert rows(home, "landings", "read, landed, already, rejected, skipped, first_id, last_id, state") == [
        (4, 2, 0, 1, '{"empty line": 1}', first, last, "done")
    ]


LINE = st.one_of(
    st.text(max_size=6).map(chat), st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")), st.just(b""),
    st.sampled_from([b"{", b"[]", b"1", b'{"a": NaN}', b"\xff", b" \t"]),
)  # fmt: skip


@pytest.mark.integration  # takes seconds
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINE, max_size=8), end=st.sampled_from([b"", b"\n", b"\r\n"]))
def test_any_bytes_as_jsonl_land_exactly_and_only_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], end: bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    data = b"\n".join([chat("first"), *lines]) + end
    (folder / "x.jsonl").write_bytes(data)
    home = folder / "lake"
    first = land([folder / "x.jsonl"], "traces", "s", home=home)
    assert first.read == first.landed + first.already + first.rejected + first.skipped
    assert first.already == 0
    split = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    whole = [line for line in split if line.strip(b" \t\r")]
    assert (first.landed + first.rejected, first.skipped) == (len(whole), len(split) - (split[-1] == b"") - len(whole))
    kept = rows(home, "traces", "position, encode(payload)") + rows(home, "rejects", "position, payload")
    assert [p for _, p in sorted(kept)] == whole
    again = land([folder / "x.jsonl"], "traces", "s", home=home)
    assert counts(again) == (first.read, 0, first.read - first.skipped, 0, first.skipped)
    (folder / "x.jsonl").write_bytes(data + b"\n" * (not data.endswith(b"\n")) + chat("more"))
    grown = land([folder / "x.jsonl"], "traces", "s", home=home)
    assert (grown.landed, grown.rejected) == (1, 0)


def test_a_grown_log_adds_its_tail_and_its_half_line_is_completed(put: Lander, home: Path) -> None:
    half, whole = chat("b")[:20], chat("b")
    assert counts(put({"x.jsonl": chat("a") + b"\n" + half})) == (2, 1, 0, 1, 0)
    assert counts(put({"x.jsonl": chat("a") + b"\n" + whole + b"\n" + chat("c")})) == (3, 2, 1, 0, 0)
    [(before,)] = rows(home, "rejects", "previous_id")
    assert [p for _, p in rows(home, "traces", "position, payload", f"previous_id = '{before}'")] == [whole.decode()]
    assert counts(put({"x.jsonl": chat("a") + b"\n" + whole + b"\n" + chat("c") + b"\n"})) == (3, 0, 3, 0, 0)


def test_a_file_renamed_or_recompressed_adds_nothing(put: Lander, tmp_path: Path) -> None:
    data = b"\n".join(chat(str(n)) for n in range(50)) + b"\n{no\n"
    assert counts(put({"x.jsonl": data})) == (51, 50, 0, 1, 0)
    (tmp_path / "in/x.jsonl").rename(tmp_path / "in/y.txt")
    assert counts(put({})) == (51, 0, 51, 0, 0)
    (tmp_path / "in/y.txt").unlink()
    assert counts(put({"z.gz": gzip.compress(data), "u": bz2.compress(data)})) == (102, 0, 102, 0, 0)


def test_a_file_changed_in_the_middle_lands_from_there(put: Lander) -> None:
    lines = [chat(str(n)) for n in range(10)]
    put({"x.jsonl": b"\n".join(lines)})
    lines[4] = chat("changed")
    assert counts(put({"x.jsonl": b"\n".join(lines)})) == (10, 6, 4, 0, 0)


def test_two_files_of_a_source_share_their_common_beginning_only(put: Lander) -> None:
    lines = [chat(str(n % 3)) for n in range(9)]
    other = [*lines[:5], chat("x"), *lines[6:]]
    assert counts(put({"a.jsonl": b"\n".join(lines), "b.jsonl": b"\n".join(other)})) == (18, 13, 5, 0, 0)


def test_equal_lines_of_a_file_are_records_of_their_own(put: Lander, home: Path) -> None:
    assert counts(put({"x.jsonl": b"\n".join([chat("a")] * 5)})) == (5, 5, 0, 0, 0)
    assert len(set(rows(home, "traces", "record_id"))) == 5


def test_another_source_or_kind_has_its_own_records(put: Lander) -> None:
    data = {"x.jsonl": chat("a")}
    assert counts(put(data)) == (1, 1, 0, 0, 0)
    assert counts(put(data, source="t")) == (1, 1, 0, 0, 0)
    assert counts(put(data, kind="synthetic")) == (1, 1, 0, 0, 0)


def test_documents_are_known_by_path_and_bytes_wherever_the_folder_lies(
    put: Lander, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"a/p.md": b"# one", "a/q.md": b"# one", "b/.hidden.md": b"# two"}
    assert counts(put(files, kind="web")) == (3, 3, 0, 0, 0)
    shutil.copytree(tmp_path / "in", tmp_path / "copy")
    (tmp_path / "copy/a/p.md").write_bytes(b"# new")
    (tmp_path / "copy/b/.hidden.md").rename(tmp_path / "copy/b/shown.md")
    (tmp_path / "copy/a/q.md.gz").write_bytes(gzip.compress((tmp_path / "copy/a/q.md").read_bytes()))
    (tmp_path / "copy/a/q.md").unlink()
    monkeypatch.chdir(tmp_path / "copy/a")
    with pytest.raises(SourceError, match=r"copy/a/p.md lies outside .*/in, where source 's' lay before"):
        land(["."], "web", "s")
    assert counts(land([".."], "web", "s", root=tmp_path / "copy")) == (3, 2, 1, 0, 0)
    assert counts(land(["."], "web", "s")) == (2, 0, 2, 0, 0)
    found = rows(home, "web", "natural_key, payload, previous_id, record_id")
    assert found == sorted(
        (k, p, None, H("record", "web", "s", k, p))
        for k, p in [
            ("a/p.md", b"# one"), ("a/q.md", b"# one"), ("b/.hidden.md", b"# two"), ("a/p.md", b"# new"),
            ("b/shown.md", b"# two"),
        ]
    )  # fmt: skip


def test_a_name_that_is_no_utf8_lands_with_its_bytes_written_out(home: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.md").write_bytes(b"# Two")
    Path(os.fsdecode(os.fsencode(tmp_path / "in") + b"/caf\xe9.md")).write_bytes(b"# One")
    assert counts(land([tmp_path / "in"], "web", "s")) == (2, 2, 0, 0, 0)
    assert rows(home, "web", "path, payload") == [("b.md", b"# Two"), ("caf\\xe9.md", b"# One")]
    assert counts(land([tmp_path / "in"], "web", "s")) == (2, 0, 2, 0, 0)


def test_options_that_differ_stop_and_amend_lets_the_new_ones_count(put: Lander, home: Path) -> None:
    data = {"x.jsonl": chat("a") + b"\n" + chat("b")}
    options = {"generator_model": "gpt", "seed": 7}
    put(data, license="MIT", options=options)
    assert counts(put(data, license="MIT", options={**options, "prompt_id": None})) == (2, 0, 2, 0, 0)
    with pytest.raises(SourceError) as said:
        put(data, license="CC0-1.0", options=options)
    assert '"license": "MIT"' in str(said.value)
    assert '"license": "CC0-1.0"' in str(said.value)
    grown = {"x.jsonl": chat("a") + b"\n" + chat("b") + b"\n" + chat("c")}
    with pytest.raises(SourceError, match="CC0"):
        put(grown, license="CC0-1.0", options=options)
    assert len(rows(home, "traces")) == 2
    assert counts(put(grown, license="CC0-1.0", options=options, amend=True)) == (3, 1, 2, 0, 0)
    amended = rows(home, "amendments", "record_id, kind, source, license, options")
    known = rows(home, "traces", "record_id", "license = 'MIT'")
    assert amended == [(r, "traces", "s", "CC0-1.0", '{"generator_model": "gpt", "seed": 7}') for (r,) in known]
    assert counts(put(grown, license="CC0-1.0", options=options)) == (3, 0, 3, 0, 0)
    with pytest.raises(SourceError, match="MIT"):
        put(grown, license="MIT", options=options)


def test_an_unrecognised_file_is_listed_in_a_folder_and_an_error_alone(put: Lander, home: Path, tmp_path: Path) -> None:
    strange = {"x.jsonl": chat("a"), "y.json": b'{"colour": "red"}', "z.bin": b"\x00\x01\x02", "empty.jsonl": b""}
    summary = put(strange)
    assert (summary.files, [p for p, _ in summary.unrecognised]) == (4, ["empty.jsonl", "y.json", "z.bin"])
    found = dict(rows(home, "landings", "path, detail", "state = 'unrecognised'"))
    assert "keys ['colour']" in found["y.json"]
    assert "which lacks: " in found["y.json"]
    assert "0x000102" in found["z.bin"]
    with pytest.raises(FormatError, match=r"y.json is of no known format: .*colour"):
        land([tmp_path / "in/y.json"], "traces", "s")
    with pytest.raises(FormatError, match="format 'nope' is not known"):
        land([tmp_path / "in"], "traces", "s", format="nope")
    with pytest.raises(UsageError, match="nowhere names no file"):
        land([tmp_path / "nowhere"], "traces", "s")


def test_only_recognised_files_fix_the_root(home: Path, tmp_path: Path) -> None:
    for name, data in (("wrong/x.bin", b"\x00\x01"), ("right/x.jsonl", chat("a"))):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(data)
    with pytest.raises(FormatError, match="none of 1 files"):
        land([tmp_path / "wrong"], "traces", "s")
    assert counts(land([tmp_path / "right"], "traces", "s")) == (1, 1, 0, 0, 0)


def test_a_glob_over_a_lake_lands_nothing_of_it(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "project" / ".lake"
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "x.jsonl").write_bytes(chat("a"))
    (tmp_path / "by_link").symlink_to(tmp_path / "project")
    for pattern in ("project", "project/*", "project/**/*", "by_link", "by_link/*"):
        assert land([tmp_path / pattern], "traces", pattern.replace("/", " "), home=inner).files == 1, pattern


def test_a_folder_that_cannot_be_listed_stops_the_landing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in" / "locked").mkdir(parents=True)
    (tmp_path / "in" / "x.jsonl").write_bytes(chat("a"))
    listed = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("locked"):  # tests may run as root, whom no mode stops
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(UsageError, match="locked cannot be listed: Permission denied"):
        land([tmp_path / "in"], "traces", "s")


def test_a_read_that_fails_is_no_end_of_the_file(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(chat(os.urandom(400).hex()) + b"\n" for _ in range(400)), mtime=0))

    class Flaky(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 50_000:
                raise ConnectionResetError("reset by peer")
            return super().read(size)

    monkeypatch.setattr(reading, "SMALL", 0)
    monkeypatch.setattr(streams, "PIECE", 20_000)
    with monkeypatch.context() as patch:
        patch.setattr(InputFile, "open", lambda place: Flaky(place.where))
        with pytest.raises(UsageError, match="cannot be read beyond its first 60,000 bytes: reset by peer"):
            land([path], "traces", "s")
    assert rows(home, "landings") == rows(home, "rejects") == []
    assert counts(land([path], "traces", "s"))[::3] == (400, 0)


def test_a_span_id_with_half_a_surrogate_pair_lands(put: Lander, home: Path) -> None:
    line = b'{"sessionId": "\\ud800", "uuid": "u", "type": "user", "message": {"role": "user", "content": "a"}}'
    assert counts(put({"x.jsonl": line}, format="claude_code")) == (1, 1, 0, 0, 0)
    assert rows(home, "traces", "natural_key, payload") == [("\\ud800/u", line.decode())]


@pytest.mark.parametrize("small", [0, 8 << 20])
def test_tables_land_row_by_row_and_are_known_again(
    put: Lander, home: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(reading, "SMALL", small)
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": ["words of a page", "other words"]}), out)
    csv = b'text,n\r\nwords of a page,1\r\n\r\nonly one\r\n"broken" quote,2\r\nother words,3\r\n'
    files = {"x.csv": csv, "y.csv.gz": gzip.compress(csv, mtime=0), "z.parquet": out.getvalue().to_pybytes()}
    assert counts(put(files, kind="web")) == (12, 4, 4, 2, 2)  # y has the records of x
    assert rows(home, "web", "path, position, payload")[:2] == [
        ("x.csv", 1, b'{"text":"words of a page","n":"1"}'),
        ("x.csv", 4, b'{"text":"other words","n":"3"}'),
    ]
    assert rows(home, "rejects", "position, reason, payload") == [
        (2, "the row has 1 cells; the header has 2", b'["only one"]'),
        (3, "no CSV row: ',' expected after '\"'", b'"broken" quote,2\r\n'),
    ]
    hashes = [(name.removesuffix(".gz"), hashlib.sha256(data).hexdigest()) for name, data in files.items()]
    assert rows(home, "landings", "path, sha256") == hashes
    assert counts(put(files, kind="web")) == (12, 0, 10, 0, 2)


def test_a_compressed_table_cut_short_lands_no_half_row(put: Lander, home: Path) -> None:
    lines = [f"{os.urandom(40).hex()},{n}\n".encode() for n in range(100)]
    whole = b"text,n\n" + b"".join(lines)
    summary = put({"x.csv.gz": gzip.compress(whole, mtime=0)[:-600]}, kind="web")
    assert (summary.read, summary.rejected) == (summary.landed + 1, 1)
    found = [json.loads(p) for (p,) in rows(home, "web", "payload")]
    assert all(f"{row['text']},{row['n']}\n".encode() in lines for row in found)
    ((reason, rest),) = rows(home, "rejects", "reason, payload")
    assert "cut short" in reason
    assert rest in whole


def test_a_named_format_lands_what_it_would_not_recognise(put: Lander) -> None:
    assert counts(put({"y.json": b'{"colour": "red"}'}, format="openai_chat")) == (1, 1, 0, 0, 0)


def test_a_record_above_the_limit_is_a_reject_and_the_rest_lands(
    put: Lander, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (checks, containers):
        monkeypatch.setattr(module, "MAX_RECORD", 5000)
        monkeypatch.setattr(module, "KEPT", 100)
    long = chat("x" * 9000)
    assert counts(put({"x.jsonl": b"\n".join([chat("a"), long, chat("b")])})) == (3, 2, 0, 1, 0)
    assert rows(home, "rejects", "payload, payload_bytes, position") == [(long[:100], len(long), 2)]


def test_a_compressed_file_cut_short_lands_what_is_readable(put: Lander, home: Path) -> None:
    data = b"".join(chat(f"{n * 7919 % 10_007}") + b"\n" for n in range(5000))
    summary = put({"x.jsonl.gz": gzip.compress(data)[:-200]})
    assert summary.landed > 4000
    assert (summary.rejected, summary.skipped) == (1, 0)
    assert "cut short" in rows(home, "rejects", "reason")[0][0]
    assert put({"x.jsonl.gz": gzip.compress(data)}).landed == 5000 - summary.landed


def test_many_batches_and_one_give_the_same_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        lines = [chat(f"{n} {n % 7}") if n % 50 else b"{broken" for n in range(3000)]
        (tmp_path / f"in/{name}.jsonl").parent.mkdir(exist_ok=True)
        (tmp_path / f"in/{name}.jsonl").write_bytes(b"\n".join(lines if name == "a" else lines[:2000] + lines[:100]))
    one = land([tmp_path / "in"], "traces", "s", home=tmp_path / "one")
    monkeypatch.setattr("lake.landing.loader.BATCH_BYTES", 25_000)
    monkeypatch.setattr("lake.landing.loader.LOOKUP_BYTES", 8_000)
    monkeypatch.setattr("lake.landing.containers.CHUNK", 2_000)
    many = land([tmp_path / "in"], "traces", "s", home=tmp_path / "many")
    assert counts(one) == counts(many)
    assert content(tmp_path / "one", "traces") == content(tmp_path / "many", "traces")
    assert len(list((tmp_path / "many/raw/traces/_delta_log").glob("*.json"))) > 10


def test_small_files_of_a_table_are_compacted(put: Lander, home: Path) -> None:
    from lake.storage import table

    expected = []
    for n in range(9):
        put({"x.jsonl": b"\n".join(chat(str(i)) for i in range(n + 1))})
        expected.append(chat(str(n)).decode())
    state = table.snapshot(f"{home}/raw/traces")
    assert state is not None
    assert len(state.files) == 2  # the eighth landing joined the files of eight
    assert [p for (p,) in rows(home, "traces", "payload")] == sorted(expected)
    assert len(rows(home, "landings")) == 9


def test_a_commit_says_by_which_run_contract_and_commit_it_was_made(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lake.landing.commits.git_commit", lambda project: "0123abc")
    (tmp_path / "a.jsonl").write_bytes(chat("hello") + b"\n")
    land([tmp_path / "a.jsonl"], "traces", "s", home=home)
    log = (home / "raw" / "traces" / "_delta_log" / "00000000000000000001.json").read_text().splitlines()
    info = next(entry["commitInfo"] for entry in map(json.loads, log) if "commitInfo" in entry)
    [(batch_id,)] = rows(home, "traces", "batch_id")
    assert (info["run_id"], info["contract_version"], info["git_commit"]) == (batch_id, "1.0.0", "0123abc")
