"""The digest of a project changes with everything that decides what a build gives, and with nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lake.errors import ContractError
from lake.kernels.project import digest, kernels

ROOT = Path(__file__).resolve().parents[3]
MODEL = """
from transforms.ngrams.walk import first


def model(dbt, session):
    return first(session)
"""
LOCAL = """
import shop_rules


def model(dbt, session):
    return shop_rules.all(session)
"""
FILES = {
    "models/curated/walked.py": MODEL,
    "models/curated/ruled.py": LOCAL,
    "transforms/ngrams/walk.py": '"""Keep the first."""\n\nfrom transforms.ngrams import steps\n\nLIMIT = 64\n',
    "transforms/ngrams/steps.py": "STEP = 1\n",
    "shop_rules.py": "RULE = 1\n",
}
CHANGES = [  # file, what stands there (empty: append; None: a new file), what to put, whether the digest changes
    ("transforms/ngrams/walk.py", "LIMIT = 64", "LIMIT = 65", True),  # imported by a model that is no memo
    ("transforms/ngrams/steps.py", "STEP = 1", "STEP = 2", True),  # imported by what the model imports
    ("transforms/ngrams/steps.py", "STEP = 1", "STEP = 1  # a comment", False),
    ("transforms/ngrams/walk.py", "Keep the first.", "Keep the best.", False),
    ("transforms/chat/turns.py", "", "\nSEEN = 1\n", True),  # of a kernel
    ("lake/kernels/memo.py", "", "\nSEEN = 1\n", True),
    ("lake/schema.py", "", "\nSEEN = 1\n", True),
    ("lake/query/query.py", "", "\nSEEN = 1\n", False),  # no model's
    ("transforms/ngrams/unused.py", None, "SEEN = 1\n", False),
    ("shop_rules.py", "RULE = 1", "RULE = 2", True),  # a module of the user's own, beside the project
    ("models/curated/another.py", None, "import transforms.ngrams.ngram_index\n", True),
    ("models/train/train_sft.sql", "", "-- a comment\n", True),  # dbt reads it
    ("contracts/reference/thresholds.csv", "", "x,1,y\n", True),
]
CHANGER = """
import json, pathlib, sys
from lake.kernels import fingerprint, project
root = pathlib.Path()
before = project.digest(root)
for file, old, new, _ in json.load(sys.stdin):
    path = pathlib.Path(file)
    text = None if old is None else path.read_text()
    assert text is None or old in text, old
    path.write_text(new if text is None else text.replace(old, new, 1) if old else text + new)
    print(project.digest(root) != before)
    path.unlink() if text is None else path.write_text(text)
"""


@pytest.mark.integration
def test_a_digest_follows_the_code_that_models_import_and_nothing_else(tmp_path: Path) -> None:
    for name in ("lake", "transforms", "contracts", "models"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "dbt_project.yml", tmp_path)
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", CHANGER],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        input=json.dumps(CHANGES),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    changed = dict(zip([f"{file}: {new}" for file, _, new, _ in CHANGES], done.stdout.split(), strict=True))
    assert changed == {f"{file}: {new}": str(changes) for file, _, new, changes in CHANGES}


CHAT_MODEL = (ROOT / "models/curated/memo_chat.py").read_text()


def project_of(folder: Path, model: str = CHAT_MODEL, examples: dict[str, Any] | None = None) -> Path:
    """A project of the one model memo_chat, with a contract of `examples`."""
    for part in ("models/curated", "contracts/curated"):
        (folder / part).mkdir(parents=True)
    (folder / "models/curated/memo_chat.py").write_text(model)
    (folder / "contracts/curated/examples.yaml").write_text(yaml.safe_dump(examples or examples_contract()))
    return folder


def examples_contract() -> dict[str, Any]:
    contract: dict[str, Any] = yaml.safe_load((ROOT / "contracts/curated/examples.yaml").read_text())
    return contract


def column(properties: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(p for p in properties if p["name"] == name)


@pytest.mark.parametrize(
    ("old", "new", "given"),
    [
        ("CHAT,", "session,", "session"),  # imported, and not what is extended
        ("session, CHAT, ", "session, ", r"dbt\.ref\('int_chat__asked'\)"),
        ("transforms.chat.chats import CHAT", "transforms.text.document_text import DOCUMENT_TEXT as CHAT", "CHAT"),
        ("memo.extend", "print", "no kernel"),
        ("transforms.chat.chats", "shop_kernels", "CHAT"),  # a module that not every process can import
        ("return", "memo.extend(session, CHAT, '')\n    return", "CHAT, CHAT"),
    ],
)
def test_a_memo_model_gives_the_kernel_of_its_name_to_memo_extend(
    tmp_path: Path, old: str, new: str, given: str
) -> None:
    assert old in CHAT_MODEL
    with pytest.raises(ContractError, match=rf"memo_chat\.py calls memo\.extend with {given}; expected one call"):
        kernels(project_of(tmp_path, CHAT_MODEL.replace(old, new)))


def test_every_memo_model_of_the_project_looks_the_same() -> None:
    form = (
        r"from lake\.kernels import memo\nfrom transforms\.[a-z_.]+ import ([A-Z_]+)\n\n\n"
        r"def model\(dbt, session\):\n(    \w+ = dbt\.ref\(\"\w+\"\)\n)?"
        r"    return memo\.extend\(session, \1, dbt\.ref\(\"\w+\"\)(, context=\w+|, scope=\"_changed\")?\)\n"
    )
    models = sorted((ROOT / "models").rglob("memo_*.py"))
    assert [m.name for m in models if not re.fullmatch(form, m.read_text())] == []
    assert sorted(kernels(ROOT)) == sorted(m.stem.removeprefix("memo_") for m in models) != []


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("messages", lambda c: column(c["items"]["properties"], "weight").update(logicalType="number"), "messages is"),
        ("messages", lambda c: c["items"]["properties"].pop(), "messages is list<"),
        ("label", lambda c: c.update(logicalType="string"), "label is string, expected bool"),
        ("tools", lambda c: c.update(name="tool_list"), "tools is absent, expected string"),
    ],
)
def test_a_contract_with_other_types_than_a_kernel_makes_is_refused(
    tmp_path: Path, name: str, change: Any, message: str
) -> None:
    contract = examples_contract()
    change(column(contract["schema"][0]["properties"], name))
    with pytest.raises(ContractError, match=rf"examples\.yaml: column {message}.*since the kernel chat makes it"):
        kernels(project_of(tmp_path, examples=contract))


def test_a_contract_may_have_more_columns_than_a_kernel_makes_and_require_more(tmp_path: Path) -> None:
    contract = examples_contract()
    columns = contract["schema"][0]["properties"]
    columns.insert(0, {"name": "tenant", "logicalType": "string", "required": True})
    column(column(columns, "messages")["items"]["properties"], "content")["required"] = True
    assert list(kernels(project_of(tmp_path, examples=contract))) == ["chat"]


# Both put this checkout's packages on the path, in place of an installation.
DIGEST = "import sys; sys.path.insert(1, {root!r})\nfrom pathlib import Path\nfrom lake.kernels.project import digest\n"
DIGEST += "print(digest(Path({project!r})))\n"


def own_project(folder: Path, **modules: str) -> Path:
    (folder / "models").mkdir(parents=True)
    (folder / "dbt_project.yml").write_text("name: shop\n")
    (folder / "models" / "walked.py").write_text("from shop.inner import rules\nimport shophelpers, pyarrow\n")
    for name, text in {"shophelpers": "import shop.more\n", "shop/inner/rules": "", "shop/more": "", **modules}.items():
        (folder / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.mark.integration  # takes seconds
def test_a_digest_is_the_same_in_a_script_and_in_python_c(tmp_path: Path) -> None:
    project = own_project(tmp_path / "project")
    program = DIGEST.format(root=str(ROOT), project=str(project))
    script = tmp_path / "bin" / "start"  # as the command `lake`, whose folder is the first on Python's path
    script.parent.mkdir()
    script.write_text(program)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def started(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, *arguments], cwd=project, env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert started(str(script)) == started("-c", program) == digest(project)
    before = digest(project)
    for module in ("shophelpers", "shop/inner/rules", "shop/more"):
        (project / f"{module}.py").write_text("RULE = 2\nimport shop.more\n")
        assert before != started(str(script)) == started("-c", program) == digest(project)
        before = digest(project)


def test_projects_with_a_module_of_one_name_have_digests_of_their_own(tmp_path: Path) -> None:
    first, second = (own_project(tmp_path / n, shophelpers=f"RULE = {n!r}\n") for n in ("one", "two"))
    same = own_project(tmp_path / "three", shophelpers="RULE = 'one'  # the same\n")
    assert digest(first) == digest(same) != digest(second)


def test_a_module_beside_the_project_goes_before_an_installed_package(tmp_path: Path) -> None:
    plain = digest(own_project(tmp_path / "plain"))
    assert plain != digest(own_project(tmp_path / "hidden", pyarrow="RULE = 1\n"))
    (tmp_path / "plain" / "pyarrow").mkdir()  # a folder of other things: Python takes the package
    assert plain == digest(tmp_path / "plain")
