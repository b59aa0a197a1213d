"""The life of a row: from file and line to the training step, and from a raw row to where it went or what dropped it.

Reads ids and keys of a release, `raw.*` and `log.*`; nothing is stored for it. Each part is one query that a user could
write, over the same views as `lake sql`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import duckdb

from lake.errors import NotFoundError, UsageError
from lake.kinds import KINDS
from lake.query.output import plain
from lake.query.query import Lake, View, connect, release_views
from lake.sql import identifier, literal

SHOWN = 300  # characters or bytes of a text; a trace is read, not processed
Row = dict[str, Any]


def trace(lake: Lake, row_id: str, release: str | int | None = None) -> Row:
    """Follow a row back to its file and forward to tables, shards and training steps.

    Args:
        lake: where.
        row_id: an example, record or reject id, or its first 8 or more hex digits.
        release: number or tag; default the last. A lake without one shows the raw part.

    Returns:
        `id`, `type`, `release`, `records` (with landing and amendments), `rejects`, and `examples`, each with
        `attributes`, `edges`, `hits`, `decision`, `tables`, `releases`, `shards` and `steps`.

    Raises:
        NotFoundError: no such row.
        UsageError: the id is none, or several rows begin with it.
    """
    if not re.fullmatch(r"[0-9a-f]{8,32}", row_id):
        raise UsageError(f"{row_id!r} is no id; expected 8 to 32 hex digits, as in examples.example_id or record_id.")
    views = release_views(lake, release)
    tables = {v.name: v.columns.names for v in views if v.columns is not None}
    connection = connect(views)
    try:
        kind, full = _find(connection, tables, row_id)
        number = lake.release(release).number if "examples" in tables else None
        result: Row = {"id": full, "type": kind, "release": number, "records": [], "rejects": [], "examples": []}
        if kind == "reject":
            result["rejects"] = _rejects(connection, full)
            return result
        examples, records = _sides(connection, tables, kind, full)
        result["records"] = [_record(connection, r) for r in records]
        result["examples"] = [_example(connection, tables, e) for e in examples]
    finally:
        connection.close()
    for example in result["examples"]:
        example["releases"] = _releases(lake, example["example_id"])
    return result


def _find(connection: duckdb.DuckDBPyConnection, tables: dict[str, list[str]], prefix: str) -> tuple[str, str]:
    """Return what an id is, and the whole of it."""
    places = [("record", identifier("raw", kind), "record_id") for kind in KINDS]
    places += [("reject", "raw.all_rejects", "reject_id")]
    places += [("example", "examples", "example_id")] if "examples" in tables else []
    query = " union ".join(
        f"select {literal(kind)} as kind, {column} as id from {table} where starts_with({column}, $id)"
        for kind, table, column in places
    )
    matches = connection.execute(f"select * from ({query}) order by all limit 11", {"id": prefix}).fetchall()
    if not matches:
        raise NotFoundError(f"no example, record or reject has an id that begins with {prefix}. Look with `lake sql`.")
    if len(matches) > 1:
        listed = ", ".join(f"{kind} {full}" for kind, full in matches[:10])
        raise UsageError(
            f"{prefix} begins several ids: {listed}{', ...' if len(matches) > 10 else ''}. Give more digits."
        )
    kind, full = matches[0]
    return kind, full


def _sides(
    connection: duckdb.DuckDBPyConnection, tables: dict[str, list[str]], kind: str, full: str
) -> tuple[list[Row], list[str]]:
    """Return the examples and the record ids that belong together."""
    if "examples" not in tables:
        return [], [full]
    where = "example_id = $id" if kind == "example" else "list_contains(record_ids, $id)"
    columns = [
        c for c in tables["examples"] if c not in ("messages", "chosen", "rejected", "tools", "prompt", "response")
    ]
    examples = _rows(connection, f"select {_listed(columns)} from examples where {where} order by example_id", id=full)
    if kind == "record":
        return examples, [full]
    return examples, [r for e in examples for r in e.get("record_ids") or []]


def _record(connection: duckdb.DuckDBPyConnection, record_id: str) -> Row:
    """Return a record with its landing and amendments."""
    for kind in KINDS:
        length = "octet_length" if kind == "web" else "strlen"  # bytes of a blob, and of a text
        query = (
            f"select {literal(kind)} as kind, * exclude (payload, payload_hash), {length}(payload) as payload_bytes, "
            f"payload[:{SHOWN}] as payload_begins from {identifier('raw', kind)} where record_id = $id"
        )
        for row in _rows(connection, query, id=record_id):
            row["options"] = json.loads(row["options"])
            # A file's own row comes with its last batch, so it is the first at or after the record's.
            landing = (
                "select batch_id, root, sha256, format, options, read, landed, already, rejected, skipped, landed_at "
                "from raw.landings where kind = $kind and source = $source and path = $path and state = 'done' "
                "and landed_at >= $at::timestamptz order by landed_at limit 1"
            )
            keys = {"kind": kind, "source": row["source"], "path": row["path"], "at": row["landed_at"]}
            row["landing"] = next(iter(_rows(connection, landing, **keys)), None)
            amendments = (
                "select license, options, batch_id, amended_at from raw.amendments where record_id = $id "
                "order by amended_at"
            )
            row["amendments"] = _rows(connection, amendments, id=record_id)
            return row
    raise NotFoundError(
        f"record {record_id} is not in raw.*; the release was built from other raw versions. Pass --release."
    )


def _rejects(connection: duckdb.DuckDBPyConnection, reject_id: str) -> list[Row]:
    query = (
        f"select * exclude (payload), payload[:{SHOWN}] as payload_begins, "
        "reject_id in (select reject_id from raw.rejects) as counts from raw.all_rejects where reject_id = $id"
    )
    return _rows(connection, query, id=reject_id)


def _example(connection: duckdb.DuckDBPyConnection, tables: dict[str, list[str]], example: Row) -> Row:
    """Add to an example what is known of it in its release and in the logs."""
    own = example["example_id"]
    example["text"] = str(example.get("text") or "")[:SHOWN]
    attributes, edges, holding = {}, {}, []
    for name, columns in sorted(tables.items()):
        if name.startswith("attr_") and "example_id" in columns:
            attributes[name] = _rows(connection, f"select * from {identifier(name)} where example_id = $id", id=own)
        elif name.endswith("_edges") and {"kept_id", "dropped_id"} <= {*columns}:
            query = f"from {identifier(name)} where kept_id = $id or dropped_id = $id order by all"
            edges[name] = _rows(connection, f"select * exclude (row_hash) {query}", id=own)
        elif name.startswith(("train_", "eval_")) and "example_id" in columns:
            query = f"select 1 as is_there from {identifier(name)} where example_id = $id limit 1"
            holding += [name] if _rows(connection, query, id=own) else []
    example |= {"attributes": attributes, "edges": edges, "tables": holding, "hits": [], "decision": None}
    if "contamination_hits" in tables:
        query = (
            "select * exclude (row_hash) from contamination_hits where example_id = $id or item_id = $id order by all"
        )
        example["hits"] = _rows(connection, query, id=own)
    if "decisions" in tables:
        query = "select * exclude (row_hash) from decisions where example_id = $id"
        example["decision"] = next(iter(_rows(connection, query, id=own)), None)
    shards = (
        "select e.export_id, e.release, e.table_name, e.format, e.path, r.shard, r.position from log.export_rows as r "
        "join log.exports as e using (export_id) where r.example_id = $id order by all"
    )
    steps = (
        "select s.run_id, any_value(r.job) as job, any_value(r.release) as release, any_value(r.path) as path, s.step, "
        "s.epoch, s.position from log.run_steps as s left join log.runs as r using (run_id) where s.example_id = $id "
        "group by s.run_id, s.step, s.epoch, s.position order by s.run_id, s.step, s.position"
    )
    return example | {"shards": _rows(connection, shards, id=own), "steps": _rows(connection, steps, id=own)}


def _releases(lake: Lake, example_id: str) -> list[Row]:
    """Return the releases that decide on an example, and how; tables of one version are read once."""
    tags = lake.refs.tags()
    by_version: dict[int, Row | None] = {}
    decided = []
    for release in lake.releases():
        table = release.tables.get("decisions")
        if table is None:
            continue
        if table.version not in by_version:
            state = release.snapshot("decisions")
            connection = connect([View("decisions", state.files, state.schema)])
            query = "select kept, uses, stage, reason from decisions where example_id = $id"
            by_version[table.version] = next(iter(_rows(connection, query, id=example_id)), None)
            connection.close()
        if (row := by_version[table.version]) is not None:
            named = sorted(t for t, number in tags.items() if number == release.number)
            decided.append({"release": release.number, "tags": named} | row)
    return decided


def _rows(connection: duckdb.DuckDBPyConnection, query: str, **parameters: str) -> list[Row]:
    result = connection.execute(query, parameters)
    names = [column[0] for column in result.description or []]
    return [dict(zip(names, map(_plain, row), strict=True)) for row in result.fetchall()]


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; bytes as the text that they are, or nearly."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else plain(value)


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(identifier, columns))


def as_text(result: Row) -> str:
    """Return a trace as lines to read: records first, then what became of them.

    Args:
        result: from `trace`.
    """
    release = f"release {result['release']}" if result["release"] else "no release yet"
    lines = [f"{result['type']} {result['id']}, {release}"]
    for reject in result["rejects"]:
        lines.append(f"rejected at {reject['path']} position {reject['position']}: {reject['reason']}")
        lines.append(f"  {'counts' if reject['counts'] else 'no longer counts: a landed record stands in its place'}")
        lines.append(f"  bytes: {reject['payload_begins']}")
    for record in result["records"]:
        lines += _record_lines(record)
    for example in result["examples"]:
        lines += _example_lines(example)
    return "\n".join(lines)


def _record_lines(record: Row) -> list[str]:
    root = f"{record['landing']['root']}/" if record["landing"] else ""
    lines = [
        f"record {record['record_id']} ({record['kind']}/{record['source']}, format {record['format']})",
        f"  file: {root}{record['path']}, position {record['position']}",
        f"  batch: {record['batch_id']}, landed at {record['landed_at']}",
    ]
    if record["landing"]:
        lines.append(f"  landing: sha256 {record['landing']['sha256']}")
    facts = {"license": record["license"], **record["options"]}
    lines += [f"  {name}: {value}" for name, value in facts.items() if value is not None]
    for change in record["amendments"]:
        lines.append(f"  amended at {change['amended_at']}: license {change['license']}, {change['options']}")
    return [*lines, f"  payload: {' '.join(str(record['payload_begins']).split())}"]


def _example_lines(example: Row) -> list[str]:
    lines = [f"example {example['example_id']} ({example['kind']}/{example['source']}, {example['shape']})"]
    provenance = {k: v for k, v in (example.get("provenance") or {}).items() if v is not None}
    for name, value in (("provenance", provenance), ("outcome", example.get("outcome")), ("text", example["text"])):
        if value:
            lines.append(f"  {name}: {' '.join(value.split()) if isinstance(value, str) else json.dumps(value)}")
    for name, rows in {**example["attributes"], **example["edges"], "contamination_hits": example["hits"]}.items():
        lines += [f"  {name}: {json.dumps(row, ensure_ascii=False)}" for row in rows[:10]]
        lines += [f"  {name}: {len(rows) - 10} more"] if len(rows) > 10 else []
    decision = example["decision"]
    if decision and decision["kept"]:
        lines.append(f"  decision: kept for {', '.join(decision['uses'] or [])}")
    elif decision:
        because = f" for {decision['kept_id']}" if decision["kept_id"] else ""
        evidence = f" ({decision['evidence']})" if decision["evidence"] else ""
        lines.append(f"  decision: dropped at {decision['stage']}: {decision['reason']}{because}{evidence}")
    lines.append(f"  tables: {', '.join(example['tables']) or 'none'}")
    for release in example["releases"]:
        tags = f" [{', '.join(release['tags'])}]" if release["tags"] else ""
        fate = "kept" if release["kept"] else f"dropped at {release['stage']}"
        lines.append(f"  release {release['release']}{tags}: {fate}")
    for shard in example["shards"]:
        lines.append(f"  shard: {shard['path']}/{shard['shard']} row {shard['position']} (release {shard['release']})")
    for step in example["steps"]:
        lines.append(f"  trained: run {step['run_id']} step {step['step']}, epoch {step['epoch']} ({step['path']})")
    return lines
