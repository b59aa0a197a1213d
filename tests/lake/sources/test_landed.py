"""The web, synthetic and benchmark sources, landed whole: what is in the lake, held to what is known of the files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lake.landing.land import Summary, land
from tests.lake.landing.landed import rows


def counts(summary: Summary) -> tuple[int, int, int, int, int]:
    return summary.read, summary.landed, summary.already, summary.rejected, summary.skipped


def again(path: str, kind: str, source: str, summary: Summary) -> None:
    """Landing the same once more adds nothing."""
    second = land([path], kind, source)
    assert (second.landed, second.rejected) == (0, 0)
    assert second.read == second.already + second.skipped


def test_two_files_of_gpteacher_share_their_beginning(data: Path, home: Path) -> None:
    folder = data / "synthetic/gpteacher"
    first = land([str(folder)], "synthetic", "gpteacher")
    assert counts(first) == (12_188, 12_163, 25, 0, 0)
    again(str(folder), "synthetic", "gpteacher", first)


def test_every_question_of_gsm8k_is_there(data: Path, home: Path) -> None:
    folder = data / "eval/gsm8k"
    first = land([str(folder)], "benchmark", "gsm8k")
    assert counts(first) == (10_111, 10_111, 0, 0, 0)
    by_file = Counter(path for (path,) in rows(home, "benchmark", "path"))
    assert by_file == {"train.jsonl": 7473, "test.jsonl": 1319, "example_model_solutions.jsonl": 1319}
    again(str(folder), "benchmark", "gsm8k", first)


def test_every_page_of_the_docs_is_a_record_equal_ones_too(data: Path, home: Path) -> None:
    folder = data / "web/react_native_docs/website"
    first = land([str(folder)], "web", "react_native_docs")
    assert counts(first) == (416, 416, 0, 0, 0)
    landed = rows(home, "web", "payload_hash, content_type")
    assert len({digest for digest, _ in landed}) == 378
    assert {content_type for _, content_type in landed} == {"text/markdown"}
    again(str(folder), "web", "react_native_docs", first)


def test_every_file_of_the_declaration_lands_whatever_its_encoding(data: Path, home: Path) -> None:
    first = land([str(data / "web/udhr/udhr"), str(data / "web/udhr/udhr2")], "web", "udhr")
    assert counts(first) == (214, 214, 0, 0, 0)
    for path, payload in rows(home, "web", "path, payload"):
        assert payload == (data / "web/udhr" / path).read_bytes()


@pytest.mark.parametrize(
    ("pattern", "url_type"),
    [("whirlwind.warc*", "application/http; msgtype=response"), ("whirlwind.warc.wet*", "text/plain")],
)
def test_plain_and_gzip_twins_land_as_one_record(data: Path, home: Path, pattern: str, url_type: str) -> None:
    folder = data / "web/cc_whirlwind"
    names = [
        p for p in folder.glob(pattern) if pattern.endswith("wet*") or p.name in ("whirlwind.warc", "whirlwind.warc.gz")
    ]
    summary = land([str(p) for p in sorted(names)], "web", "whirlwind")
    assert len(names) == 2
    assert (summary.landed, summary.already, summary.rejected) == (1, 1, 0)
    assert rows(home, "web", "natural_key, content_type") == [("https://an.wikipedia.org/wiki/Escopete", url_type)]


def test_broken_captures_are_rejects_with_reasons_and_the_rest_lands(data: Path, home: Path) -> None:
    folder = data / "web/warcio_testdata/test"
    first = land([str(folder)], "web", "warcio")
    assert first.unrecognised == ()
    assert first.read == first.landed + first.already + first.rejected + first.skipped
    rejects = Counter((path.rsplit("/", 1)[-1], reason[:20]) for path, reason in rows(home, "rejects", "path, reason"))
    assert rejects == {
        ("bad.arc", "the record's length "): 3,
        ("example-space-in-url.arc", "cut short: 1579 of 1"): 1,
        ("example-trunc.warc", "no record starts her"): 1,
    }
    again(str(folder), "web", "warcio", first)


@pytest.mark.parametrize(
    ("kind", "source", "landed"),
    [
        ("synthetic", "hh_rlhf", 2312),
        ("synthetic", "llamafactory_sft_dpo", 1851),
        ("synthetic", "self_instruct", 2783),
        ("benchmark", "arc_agi", 400),
        ("benchmark", "bbh", 2865),
        ("benchmark", "bfcl", 2756),
        ("benchmark", "decon_bundled", 27_822),
        ("benchmark", "deepseek_math", 6458),
        ("benchmark", "humaneval", 165),
        ("benchmark", "ifeval", 541),
        ("benchmark", "pubmedqa", 1500),
    ],
)
def test_every_record_of_a_source_lands(data: Path, home: Path, kind: str, source: str, landed: int) -> None:
    folder = data / ("eval" if kind == "benchmark" else kind) / source
    first = land([str(folder)], kind, source)
    nan = 10 if source == "deepseek_math" else 0  # options of MMLU-STEM that are NaN, which is no JSON
    assert (first.read, first.rejected, first.skipped) == (landed, nan, 0)
    assert first.landed + first.already == landed - nan
    again(str(folder), kind, source, first)
