"""Containers give the exact bytes of every record, whatever lies around it and however it is compressed."""

from __future__ import annotations

import bz2
import csv
import datetime
import gzip
import io
import itertools
import json
import lzma
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lake.landing import checks, containers, json_scan, tabular
from lake.landing.checks import Block
from lake.landing.streams import Stream, compression, without_suffix
from tests.effort import examples

COMPRESSORS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": zstandard.ZstdCompressor().compress,
    None: bytes,
}
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def stream(data: bytes) -> Stream:
    return Stream(io.BytesIO(data))  # type: ignore[arg-type]


def good(blocks: list[Block]) -> list[bytes]:
    return [p for b in blocks for i, p in enumerate(b.payloads) if i not in b.problems]


def bad(blocks: list[Block]) -> list[tuple[int, bytes, str]]:
    return [(b.positions[i], b.payloads[i], reason) for b in blocks for i, reason in sorted(b.problems.items())]


def strict(data: bytes) -> bool:
    """RFC 8259 by Python's parser, with its two leniencies taken away."""

    def no(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(data.decode(), parse_constant=no)
    except ValueError:
        return False
    return not data.startswith(b"\xef\xbb\xbf")


EDITS = st.lists(
    st.tuples(st.integers(0, 200), st.sampled_from(list(b'{}[]",:\\ 019.eE+-tfnul\n\x01\xff'))), max_size=3
)


@settings(max_examples=examples(400))
@given(VALUES, EDITS, st.booleans())
@example({"a": [1, {"b": "\\u00e9"}]}, [], True)
def test_what_is_json_is_what_a_strict_parser_reads(value: Any, edits: list[tuple[int, int]], insert: bool) -> None:
    data = bytearray(json.dumps(value, indent=1 if insert else None).encode())
    for place, byte in edits:
        at = place % len(data)
        data[at : at + (not insert)] = bytes([byte])
    whole = bytes(data)
    block = checks.checked(whole, np.array([0]), np.array([len(whole)]), 1)
    assert (not block.problems) == strict(whole)


TOKENS = (
    b"{", b"}", b"[", b"]", b":", b",", b" ", b'"a"', b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\\x"', b'"\n"', b"1", b"0",
    b"-", b"+", b".", b"e", b"NaN", b"null", b"\0",
)  # fmt: skip


def test_every_short_row_of_tokens_is_json_where_a_strict_parser_says_so() -> None:
    rows = [b"".join(tokens) for length in range(5) for tokens in itertools.product(TOKENS, repeat=length)]
    accepted = set(range(len(rows))) - set(json_scan.find_problems(rows))
    assert accepted == {i for i, row in enumerate(rows) if strict(row)}
    assert rows.index(b'["\\ud800"]') in accepted  # JSON by RFC 8259, and refused by msgspec


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"", "ends before its JSON value is complete"),
        (b'{"a": "b', "ends before its JSON value is complete"),
        (b"NaN", "a value was expected"),
        (b"[1, Infinity]", "a value was expected"),
        (b"[1,]", "a value was expected"),
        (b"[.5]", "a value was expected"),
        (b"[+1]", "a value was expected"),
        (b'{"a": 1,}', "a key in double quotes was expected"),
        (b'"a\tb"', "a control character or line end stands in a string"),
        (b'"\\x41"', "an escape in a string is none of JSON"),
        (b'["\\ud80"]', "an escape in a string is none of JSON"),
        (b"{'a': 1}", "a key in double quotes was expected"),
        (b'{"a" 1}', "':' was expected after a key"),
        (b"[01]", "',' or a closing bracket was expected"),
        (b"[1.]", "a number is none of JSON"),
        (b"1 2", "something follows the JSON value"),
        (b"\xef\xbb\xbf1", "a value was expected"),
        (b'"\\ud800"', None),
        (b'{"\\udfff\\ud800": 1e99999}', None),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, None),
    ],
)
def test_what_is_no_json_is_refused_with_the_reason_and_unusual_json_is_not(record: bytes, reason: str | None) -> None:
    assert json_scan.find_problems([b"{}", record, b"[]"]) == ({1: reason} if reason else {})


@settings(max_examples=examples(150))
@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b" ")), max_size=8), st.booleans())
def test_lines_are_kept_as_they_are_and_each_is_accounted_for(lines: list[bytes], ends: bool) -> None:
    data = b"\n".join(lines) + (b"\n" if ends and lines else b"")
    assume(compression(data) is None)
    blocks = list(containers.jsonl(stream(data)))
    pieces = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    pieces = [p.removesuffix(b"\r") if i < len(pieces) - 1 else p for i, p in enumerate(pieces)]
    expected = [(i + 1, p) for i, p in enumerate(pieces) if p.strip(b" \t\r\n")]
    found = [(n, p) for b in blocks for n, p in zip(b.positions, b.payloads, strict=True)]
    assert [(n, p.removesuffix(b"\r")) for n, p in found] == [(n, p.removesuffix(b"\r")) for n, p in expected]
    lines_in_all = len(pieces) - (pieces[-1] == b"")
    assert sum(b.skipped.total() for b in blocks) == lines_in_all - len(expected)
    assert [n for n, _, _ in bad(blocks)] == [n for n, p in found if not strict(p)]


@settings(max_examples=examples(150))
@given(
    st.lists(VALUES, max_size=6), st.sampled_from(["", " ", "\n\t"]), st.integers(1, 9), st.sampled_from([None, 0, 2])
)
def test_elements_of_a_list_keep_their_exact_bytes(
    values: list[Any], space: str, chunk: int, indent: int | None
) -> None:
    texts = [json.dumps(v, ensure_ascii=False, indent=indent) for v in values]
    data = (space + "[" + space + f"{space},{space}".join(texts) + space + "]" + space).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(containers, "CHUNK", chunk)  # every place is once the end of a chunk
        blocks = list(containers.json_list(stream(data)))
    assert (good(blocks), bad(blocks)) == ([t.encode() for t in texts], [])


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(st.text(max_size=4), VALUES), max_size=5), st.integers(1, 9))
def test_members_of_a_mapping_and_lists_below_a_key_keep_their_bytes(
    members: list[tuple[str, Any]], chunk: int
) -> None:
    texts = [json.dumps(k) + " :  " + json.dumps(v, indent=1) for k, v in members]
    elements = [json.dumps(v) for _, v in members]
    other = json.dumps({"examples": ["no } ]", '\\"']})
    data = f'{{"x{{": {other}, "data": {{"y": "}}", "items": [{",".join(elements)}], "z": 1}}, "w": 2}}'.encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(containers, "CHUNK", chunk)
        blocks = list(containers.json_items(stream(f"{{{','.join(texts)}}}".encode()), "*"))
        below = list(containers.json_items(stream(data), "data.items"))
    assert (good(blocks), bad(blocks)) == ([f"{{{t}}}".encode() for t in texts], [])
    assert (good(below), bad(below)) == ([e.encode() for e in elements], [])


def test_values_that_follow_each_other_are_records() -> None:
    data = b'\xef\xbb\xbf{\n "a": 1\n}\n{"b": "}{"}  {"c": [\n]}\n'
    blocks = list(containers.json_values(stream(data)))
    assert good(blocks) == [b'{\n "a": 1\n}', b'{"b": "}{"}', b'{"c": [\n]}']


@pytest.mark.parametrize(
    ("data", "kept", "reasons"),
    [
        (b'[{"a":1},{"a":nope},{"a":3}]', [b'{"a":1}', b'{"a":3}'], ["not JSON: a value was expected"]),
        (b'[1,,2]', [b"1", b"2"], ["not JSON: ends before its JSON value is complete"]),
        (b'[1,2] x', [b"1", b"2"], ["bytes follow the end of the list"]),
        (b'[1,{"a"', [b"1"], ["the file ends before its list is closed"]),
        (b'[1,{"a":2}', [b"1", b'{"a":2}'], ["the file ends before its list is closed"]),
        (b"[]", [], []),
        (b"[ \n ]", [], []),
    ],
)  # fmt: skip
def test_a_broken_list_gives_what_is_whole_and_says_what_is_not(
    data: bytes, kept: list[bytes], reasons: list[str]
) -> None:
    blocks = list(containers.json_list(stream(data)))
    assert (good(blocks), [r for _, _, r in bad(blocks)]) == (kept, reasons)


@pytest.mark.parametrize("cut", [containers.jsonl, containers.json_list])
def test_a_record_above_the_limit_is_a_problem_and_the_rest_is_read(cut: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "CHUNK", 100)
    for module in (checks, containers):
        monkeypatch.setattr(module, "MAX_RECORD", 1000)
        monkeypatch.setattr(module, "KEPT", 10)
    long = b'"' + b"x" * 5000 + b'"'
    parts = [b'{"a":1}', long, b'{"b":2}', b'"' + b"y" * 1010 + b'"', b"3"]
    data = b"\n".join(parts) if cut is containers.jsonl else b"[" + b",".join(parts) + b"]"
    blocks = list(cut(stream(data)))
    assert good(blocks) == [b'{"a":1}', b'{"b":2}', b"3"]
    assert [(n, p[:10]) for n, p, _ in bad(blocks)] == [(2, long[:10]), (4, parts[3][:10])]
    assert [s for b in blocks for s in b.sizes.values()] == [5002, 1012]


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_compression_is_told_by_content_and_members_are_joined(kind: str | None) -> None:
    data = b"".join(b'{"n": %d}\n' % n for n in range(50_000))
    lies = COMPRESSORS[kind](data[:100_000]) + COMPRESSORS[kind](data[100_000:])
    found = stream(lies)
    assert (found.peek(70_000)[:70_000], found.compression) == (data[:70_000], kind)
    assert (b"".join(iter(lambda: found.read(33_333), b"")), found.broken) == (data, None)
    lines = stream(lies)
    assert b"".join(iter(lines.readline, b"")) == data


@pytest.mark.parametrize("kind", [k for k in COMPRESSORS if k])
def test_a_file_cut_short_gives_its_readable_lines_and_one_problem(kind: str) -> None:
    data = b"".join(b'{"n": %d}\n' % (n * 7919 % 100_003) for n in range(60_000))
    lies = COMPRESSORS[kind](data)
    blocks = list(containers.jsonl(stream(lies[: len(lies) - 40])))
    kept = good(blocks)
    assert kept == data.split(b"\n")[: len(kept)]
    [(_, rest, reason)] = bad(blocks)
    assert data.startswith(b"".join(k + b"\n" for k in kept) + rest)
    assert "cut short" in reason


def test_what_follows_a_gzip_file_and_is_none_is_a_problem() -> None:
    blocks = list(containers.jsonl(stream(gzip.compress(b'{"a":1}\n') + b"\0" * 700)))
    assert (good(blocks), bad(blocks)) == ([b'{"a":1}'], [])
    blocks = list(containers.jsonl(stream(gzip.compress(b'{"a":1}\n') + b"junk that is no gzip")))
    assert good(blocks) == [b'{"a":1}']
    assert "bytes that are no gzip follow" in bad(blocks)[0][2]


def test_csv_cells_stay_the_texts_that_they_are(tmp_path: Path) -> None:
    rows = [{"text": 'a "quoted", 007', "n": "007"}, {"text": "two\nlines", "n": ""}]
    out = io.StringIO()
    writer = csv.DictWriter(out, ["text", "n"])
    writer.writeheader()
    writer.writerows(rows)
    data = b"\xef\xbb\xbf" + out.getvalue().encode() + b"\r\nonly one\r\n\xff\xfe,1\r\n"
    assert tabular.csv_shape(data, "x.csv") == (",", ["text", "n"])
    blocks = list(tabular.csv_rows(stream(data), ","))
    assert good(blocks) == [
        b'{"text":"a \\"quoted\\", 007","n":"007"}',
        b'{"text":"two\\nlines","n":""}',
    ]
    assert [(n, r) for n, _, r in bad(blocks)] == [(3, "the row has 1 cells; the header has 2"), (4, "not UTF-8")]
    assert sum(b.skipped["empty line"] for b in blocks) == 1


def test_blocks_of_tables_with_long_rows_are_bounded(tmp_path: Path) -> None:
    texts = [random.Random(n).randbytes(200_000).hex() for n in range(100)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "x", use_dictionary=False, compression="none")
    csv_file = "text\n" + "\n".join(texts) + "\n"
    for blocks in (
        list(tabular.parquet_rows(stream((tmp_path / "x").read_bytes()))),
        list(tabular.csv_rows(stream(csv_file.encode()), ",")),
    ):
        assert [json.loads(p)["text"] for p in good(blocks)] == texts
        assert max(sum(map(len, b.payloads)) for b in blocks) < tabular.BLOCK_BYTES + 500_000
        assert [n for b in blocks for n in b.positions] == list(range(1, 101))


def test_parquet_values_become_what_json_has(tmp_path: Path) -> None:
    noon = datetime.datetime(2024, 1, 2, 12, tzinfo=datetime.UTC)
    table = pa.table(
        {"t": ["é", None], "x": [1.5, float("nan")], "b": [b"\x00\xff", b""], "at": [noon, None], "l": [[{"k": 1}], []]}
    )
    pq.write_table(table, tmp_path / "x")
    blocks = list(tabular.parquet_rows(stream((tmp_path / "x").read_bytes())))
    assert good(blocks) == [
        '{"t":"é","x":1.5,"b":"AP8=","at":"2024-01-02T12:00:00+00:00","l":[{"k":1}]}'.encode(),
        b'{"t":null,"x":"NaN","b":"","at":null,"l":[]}',
    ]


def test_deep_nesting_is_no_crash() -> None:
    for depth in (json_scan.MAX_DEPTH, json_scan.MAX_DEPTH + 1):
        data = b"[" * depth + b"]" * depth
        blocks = list(containers.jsonl(stream(data)))
        assert (len(good(blocks)), len(bad(blocks))) == ((1, 0) if depth == json_scan.MAX_DEPTH else (0, 1))


def test_only_suffixes_of_compressions_go() -> None:
    names = ["a.jsonl.gz", "b.ZST", "c.md", ".gz", "d.tar.xz", "e.bz2"]
    assert [without_suffix(n) for n in names] == ["a.jsonl", "b", "c.md", ".gz", "d.tar", "e"]
