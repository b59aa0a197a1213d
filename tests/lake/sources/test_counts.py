"""Every file of the web, synthetic and benchmark sources: which format it is, and how many records it holds.

The truth is each source's own SOURCE.md, counted when the files were collected.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lake.landing.recognition import recognise_file
from lake.landing.streams import Stream, without_suffix

ROW = re.compile(r"^\| (\S+) \| (\d+) \| ?(.*?) ?\|$")

# Files that are no data of their kind, or whose count in SOURCE.md is of another unit.
UNRECOGNISED = {
    "synthetic": {"llamafactory_sft_dpo/data/dataset_info.json"},
    "benchmark": {
        "bbh/cot-prompts/boolean_expressions.txt",
        "bbh/cot-prompts/date_understanding.txt",
        "decon_bundled/NOTICES.txt",
        "humaneval/data/example_samples.jsonl",
    },
    "web": {
        "datajuicer_demos/demos/data/auto-prompt-optim/demo-dataset-prompts.jsonl",
        "datajuicer_demos/demos/data/auto-prompt-optim/init_infer_dataset.jsonl",
        "datajuicer_demos/demos/data/demo-dataset-annotation-human-preference.jsonl",
        "datajuicer_demos/demos/data/demo-dataset-chatml.jsonl",
    },
}
FORMATS = {
    "synthetic/gpteacher/Roleplay": "alpaca",
    "synthetic/gpteacher/Toolformer": "alpaca",
    "synthetic/gpteacher/": "self_instruct",
    "synthetic/hh_rlhf": "hh",
    "synthetic/llamafactory_sft_dpo/data/dpo_": "preference",
    "synthetic/llamafactory_sft_dpo/data/v1_dpo": "preference",
    "synthetic/llamafactory_sft_dpo/data/kto": "kto",
    "synthetic/llamafactory_sft_dpo/data/identity": "alpaca",
    "synthetic/llamafactory_sft_dpo/data/glaive": "sharegpt",
    "synthetic/llamafactory_sft_dpo/data/": "openai_chat",
    "synthetic/self_instruct/data/finetuning": "prompt_completion",
    "synthetic/self_instruct/human_eval/predictions": "alpaca",
    "synthetic/self_instruct/": "self_instruct",
    "benchmark/bbh/": "bbh",
    "benchmark/bfcl/possible_answer": "answers_by_id",
    "benchmark/pubmedqa/data/ori": "keyed_questions",
    "benchmark/pubmedqa/data/test": "answers_by_key",
    "benchmark/": "question_answer",
    "web/speeches": "text",
    "web/dolma_testdata/python": "text",
    "web/llamafactory_webtext/data/wiki": "text",
    "web/": "web_rows",
}
OTHER_UNITS = {
    "datajuicer_demos/demos/data_visualization_diversity/data/demo-dataset.jsonl": 29,  # one JSON list
    "llamafactory_webtext/data/wiki_demo.txt": 1,
    "pubmedqa/data/test_ground_truth.json": 500,
}


def counted(data: Path, kind: str) -> list[tuple[str, int]]:
    """Files with their records as the SOURCE.md of each source tells them; captures are told elsewhere."""
    folder = data / ("eval" if kind == "benchmark" else kind)
    found = []
    for source in sorted(folder.glob("*/SOURCE.md")):
        table = source.read_text().split("## Files")[1]
        for path, records, _ in (m.groups() for line in table.splitlines() if (m := ROW.match(line))):
            name = f"{source.parent.name}/{path}"
            if (folder / name).is_file() and ".warc" not in name and "warcio" not in name:
                found.append((name, OTHER_UNITS.get(name, int(records))))
    assert len(found) > 20
    return found


def read(path: Path, kind: str) -> tuple[str | None, int]:
    """The format of a file and the number of its records."""
    stream = Stream(path.open("rb"))
    reading = recognise_file(stream, without_suffix(path.name), kind)
    if reading.format is None:
        return None, 0
    if reading.cut is None:
        return reading.format.NAME, 1
    return reading.format.NAME, sum(len(block.payloads) for block in reading.cut(stream))


@pytest.mark.parametrize("kind", ["web", "synthetic", "benchmark"])
def test_each_file_is_of_its_format_and_holds_the_records_that_its_source_counted(data: Path, kind: str) -> None:
    folder = data / ("eval" if kind == "benchmark" else kind)
    wrong = []
    for name, records in counted(data, kind):
        form, found = read(folder / name, kind)
        no_items = "/multi_turn_func_doc/" in name or "/fixtures/training/" in name
        no_text = records == 0 or "/attributes/" in name or "/dedupe-" in name
        if name in UNRECOGNISED[kind] or (kind == "benchmark" and no_items) or (kind == "web" and no_text):
            expected: tuple[str | None, int] = (None, 0)
        else:
            expected = (next(v for k, v in FORMATS.items() if f"{kind}/{name}".startswith(k)), records)
        if (form, found) != expected:
            wrong.append((name, (form, found), expected))
    assert wrong == []


def test_each_task_of_arc_agi_is_one_record(data: Path) -> None:
    files = sorted((data / "eval/arc_agi/data/training").glob("*.json"))
    assert len(files) == 400
    assert {read(f, "benchmark") for f in files} == {("arc_agi", 1)}


@pytest.mark.integration
@pytest.mark.parametrize(
    ("folder", "pages"),
    [("react_native_docs/website", 416), ("tldr_pages", 7541), ("udhr/udhr", 52), ("udhr/udhr2", 162)],
)
def test_each_page_of_a_folder_is_one_document(data: Path, folder: str, pages: int) -> None:
    files = [f for f in (data / "web" / folder).rglob("*") if f.is_file() and f.name != "SOURCE.md"]
    assert len(files) == pages
    assert {read(f, "web") for f in files if f.stat().st_size} == {("text", 1)}
