"""What decides the rows of an extended model, as hashes over code: a publish notes them, the next build compares.

A row that the last release holds is taken over when the code that made it is the code of now: the model's own, that of
the views and macros behind it, seeds, the kernels' fingerprints, dbt's `--vars` and DuckDB's version. Code ends at the
tables and extended models that a model follows: what changed there is seen by their rows. Comments do not count.

The model that follows records is made of several kinds of them, each by models of its own below models/staging/<kind>/,
so it has a hash a kind: another registry of benchmarks makes no chat anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from lake.errors import ContractError
from lake.identity import H
from lake.kinds import KINDS

WHOLE = ""
"""Name of the hash over all code that is not one kind's own."""

RECORDS = "records"
"""What `follows` says of the model that is made of raw records."""

# Strings first, so that two dashes and spaces inside one are kept.
CODE = re.compile(
    r"(?P<string>'(?:[^']|'')*'|\"[^\"\n]*\")|(?:\s|\{#.*?#\}|/\*.*?\*/|--[^\n]*)+",
    re.DOTALL,
)


@dataclass(frozen=True)
class Extended:
    """A model that takes rows of the last release over.

    Attributes:
        name: as SQL names it.
        key: column that it shares with all that it follows.
        follows: names of models; RECORDS alone for raw records.
        code: hashes, by kind of record, and under WHOLE.
    """

    name: str
    key: str
    follows: tuple[str, ...]
    code: Mapping[str, str]


def extended_models(manifest: Any, kernels: Mapping[str, str], variables: str = "{}") -> list[Extended]:
    """Return the extended models of a project, each after those that it follows.

    Args:
        manifest: dbt's.
        kernels: fingerprint of each kernel, by name.
        variables: dbt's `--vars`, as canonical JSON.

    Raises:
        ContractError: a model reads a table that it does not follow, whose changes it would not see, or follows one
            that it does not read.
    """
    models = {n.name: n for n in manifest.nodes.values() if _is_extended(n)}
    found = {
        name: Extended(
            name, str(node.config.extra["key"]), _follows(manifest, node), _code(manifest, node, kernels, variables)
        )
        for name, node in models.items()
    }
    ordered: list[Extended] = []
    while len(ordered) < len(found):  # ends, since dbt refuses circles and a model reads what it follows
        placed = {m.name for m in ordered}
        ordered += [
            m for m in found.values() if m.name not in placed and placed.issuperset({*m.follows} & found.keys())
        ]
    return ordered


def _is_extended(node: Any) -> bool:
    return node.resource_type == "model" and node.config.materialized == "extended"


def _follows(manifest: Any, node: Any) -> tuple[str, ...]:
    declared = node.config.extra["follows"]
    if declared == RECORDS:
        return (RECORDS,)
    read = {*_tables_behind(manifest, node)}
    for name in sorted(read ^ {*declared}):
        problem = "reads and does not follow" if name in read else "follows and does not read"
        raise ContractError(
            f"{node.original_file_path} {problem} {name}; expected `follows` to name each table that it reads, itself "
            "or through views, since rows are made anew where these change. Mend `follows`, or make it a table."
        )
    return tuple(declared)


def _tables_behind(manifest: Any, node: Any) -> Iterator[str]:
    """Yield the names of the relations whose rows a model reads, itself or through views: what is no code."""
    for one in _reached(manifest, node.depends_on.nodes):
        parent = manifest.sources.get(one) or manifest.nodes[one]
        if parent.resource_type == "source" and parent.source_name == "raw":
            yield f"raw.{parent.name}"
        elif parent.resource_type == "snapshot" or (parent.resource_type == "model" and _holds_rows(parent)):
            yield parent.name


def _reached(manifest: Any, ids: Iterable[str]) -> set[str]:
    """Return the nodes behind some, them included, up to what holds rows of its own."""
    seen: set[str] = set()
    todo = list(ids)
    while todo:
        one = todo.pop()
        if one in seen or (one not in manifest.nodes and one not in manifest.sources):
            continue
        seen.add(one)
        node = manifest.nodes.get(one)
        if node is not None and node.resource_type == "model" and node.config.materialized in ("view", "ephemeral"):
            todo += node.depends_on.nodes
    return seen


def _holds_rows(node: Any) -> bool:
    """Say whether a model's rows change when its code does not. A memo's result is a function of what is asked."""
    return node.config.materialized not in ("view", "ephemeral") and not _is_memo(node)


def _is_memo(node: Any) -> bool:
    return bool(node.language == "python" and node.name.startswith("memo_"))


def _code(manifest: Any, node: Any, kernels: Mapping[str, str], variables: str) -> dict[str, str]:
    """Return the hashes of what decides a model's rows."""
    by_kind: dict[str, set[str]] = {WHOLE: set()}
    for parent in node.depends_on.nodes:
        by_kind.setdefault(_kind(manifest.nodes.get(parent)), set()).update(_reached(manifest, [parent]))
    own = [*_texts_of(manifest, node), repr(sorted(node.config.extra.items())), variables, duckdb.__version__]
    return {
        kind: H("lineage", node.name, kind, *(own if kind == WHOLE else []), *_texts(manifest, kernels, ids))
        for kind, ids in by_kind.items()
    }


def _kind(node: Any) -> str:
    """Return the kind of record that a staging model is about, WHOLE for other models."""
    folders = node.fqn[1:-1] if node is not None else []
    return folders[1] if folders[:1] == ["staging"] and folders[1:2] and folders[1] in KINDS else WHOLE


def _texts(manifest: Any, kernels: Mapping[str, str], ids: Iterable[str]) -> Iterator[str]:
    for one in sorted(ids):
        node = manifest.nodes.get(one)
        if node is None or (node.resource_type == "model" and _holds_rows(node)):
            continue
        yield one
        if node.resource_type == "seed":
            yield (Path(node.root_path) / node.original_file_path).read_text("utf-8")
        elif _is_memo(node):
            yield kernels.get(node.name.removeprefix("memo_"), node.raw_code)
        else:
            yield from _texts_of(manifest, node)


def _texts_of(manifest: Any, node: Any) -> Iterator[str]:
    """Yield a model's code, its columns' types, and the macros of the project that it calls, each without comments."""
    yield without_comments(node.raw_code)
    yield from (f"{c.name} {c.data_type}" for c in node.columns.values())
    macros: set[str] = set()
    todo = list(node.depends_on.macros)
    while todo:
        one = todo.pop()
        macro = manifest.macros.get(one)
        if macro is not None and one not in macros and macro.package_name not in ("dbt", "dbt_duckdb"):
            macros.add(one)
            todo += macro.depends_on.macros
    yield from (without_comments(manifest.macros[m].macro_sql) for m in sorted(macros))


def without_comments(code: str) -> str:
    """Return SQL or Jinja with one space for each run of white space and comments outside strings.

    Args:
        code: a model or macro.
    """
    return CODE.sub(lambda found: found["string"] or " ", code).strip()
