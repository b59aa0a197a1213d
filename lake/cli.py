"""The command `lake`: each subcommand is a thin call on the library.

Nothing heavy is imported here; a subcommand imports its part when it runs, so that `lake --help` stays quick.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import click

from lake.errors import ContractError, InternalError, LakeError, UsageError
from lake.json_values import json_value, usual_number
from lake.kinds import KINDS


class Group(click.Group):
    """Turns our errors into one line on stderr and the exit code of their class, all others into ours, with a trace."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand."""
        try:
            return super().invoke(ctx)
        except LakeError as error:
            click.echo(f"{type(error).__name__}: {error}", err=True)
            ctx.exit(error.exit_code)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception:  # 1 is for gates: a crash must not look like a failed audit
            traceback.print_exc()
            ctx.exit(InternalError.exit_code)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="lakewright")
def main() -> None:
    """Land, build, audit, publish, query and train on the data of language models."""


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    json.dump(json_value(value, usual_number), sys.stdout, ensure_ascii=False)
    sys.stdout.write("\n")


@main.group()
def contract() -> None:
    """Keep the files that follow from the contracts in step with them."""


@contract.command("sync")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 and list the files that differ (for CI).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def contract_sync(check: bool, as_json: bool) -> None:
    """Write models/**/*.yml (dbt) from contracts/**/*.yaml (ODCS)."""
    from lake.config import lake_paths
    from lake.contract import missing_counterparts, sync

    project = lake_paths().project
    files = [str(f) for f in sync(project, check=check)]
    alone = missing_counterparts(project)
    if as_json:
        print_json({"files": files, "missing_counterparts": alone})
    else:
        click.echo("".join(f"{'differs' if check else 'written'}: {f}\n" for f in files), nl=False)
        click.echo("".join(f"without a counterpart: {line}\n" for line in alone), nl=False, err=True)
    if check and (files or alone):
        hint = "Run `lake contract sync` and commit the files." if files else "Write the missing half of each pair."
        raise ContractError(f"{len(files)} files differ from their contracts, {len(alone)} stand alone. {hint}")


@main.command("export")
@click.argument("table")
@click.option("--release", help="Number or tag; default the last.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["jsonl", "parquet", "openai"]),
    default="jsonl",
    show_default=True,
    help="jsonl trains in TRL as it is, parquet has every column, openai is providers' chat JSONL.",
)
@click.option("--shards", type=click.IntRange(1), default=1, show_default=True, help="Number of files.")
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder to make.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def export_table(table: str, release: str | None, file_format: str, shards: int, out: Path, as_json: bool) -> None:
    """Write TABLE of a release as shards, rows in id order, with a manifest; equal releases give equal bytes."""
    from training.cli import run_export

    click.echo(run_export(table, release, file_format, shards, out, as_json))


@main.group()
def train() -> None:
    """Train on a release, with what each step trained on record."""


@train.command("sft")
@click.argument("job", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def train_sft(job: Path, as_json: bool) -> None:
    """Fine-tune as JOB (a YAML file) says; again, to go on with a run that was stopped."""
    from training.cli import run_train_sft

    if result := run_train_sft(job, as_json):
        click.echo(result)


@main.command("runs")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def runs(as_json: bool) -> None:
    """List training runs, the newest first."""
    from training.cli import run_runs

    click.echo(run_runs(as_json))


@main.command("init")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
def init_project(folder: Path) -> None:
    """Lay out a project of your own in FOLDER: models, contracts, macros, tests, dbt's project and profile."""
    from lake.init import init

    made = init(folder)
    click.echo("".join(f"{folder / part}\n" for part in made), nl=False)
    click.echo(
        f"\nNext:\n  cd {folder}\n  lake land FILES --kind traces --source NAME\n  lake build\n"
        '  lake sql "select * from funnel"'
    )


@main.command("land")
@click.argument("paths", nargs=-1, required=True)
@click.option("--kind", required=True, type=click.Choice(KINDS), help="What they are.")
@click.option("--source", required=True, help="Name that the records belong to.")
@click.option("--root", help="Where the source's root lies now (a folder or URL); default as at its first landing.")
@click.option("--format", "file_format", help="A module of lake/sources; default: recognised by content.")
@click.option("--license", "license_", help="SPDX identifier of all records.")
@click.option("--generator", "generator_model", help="Model that made the records.")
@click.option("--generator-version", help="Its version.")
@click.option("--prompt-id", help="Name of the prompt that made them.")
@click.option("--prompt-hash", help="Hash of that prompt.")
@click.option("--seed", type=int, help="Seed of the generation.")
@click.option("--temperature", type=float, help="Sampling temperature.")
@click.option("--top-p", type=float, help="Nucleus of the sampling.")
@click.option("--parent-id", "parent_ids", multiple=True, help="Record that they were made from; repeatable.")
@click.option("--verifier", help="What checked them.")
@click.option("--verifier-verdict", help="What it said.")
@click.option("--suite", help="Benchmark that they belong to.")
@click.option("--split", help="Its split.")
@click.option("--amend", is_flag=True, help="Where records are there with other options, let these count from now on.")
@click.option("--json", "as_json", is_flag=True, help="Print the counts as one JSON object.")
def land_files(
    paths: tuple[str, ...], kind: str, source: str, root: str | None, file_format: str | None, license_: str | None,
    amend: bool, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Land files, folders, globs or URLs, compressed or not, of any known format; what is there adds nothing."""
    from lake.landing.land import land
    from lake.progress import progress

    with progress(unit="bytes", quiet=as_json) as show:
        summary = land(
            paths, kind, source, root=root, format=file_format, license=license_, options=options, amend=amend,
            progress=show,
        )  # fmt: skip
    if as_json:
        print_json(summary.as_json())
    else:
        click.echo(summary.as_text())


@main.command("demo")
@click.option(
    "--dir", "folder", default=".lake/demo", show_default=True, type=click.Path(path_type=Path), help="Folder to make."
)
@click.option("--steps", default=3, show_default=True, type=click.IntRange(0), help="Training steps; 0: no training.")
def demo(folder: Path, steps: int) -> None:
    """Run the whole path on made-up input with planted errors, and check that each of them is found."""
    from lake.demo.run import run

    run(folder, steps)


@main.command("build")
@click.option("--tag", help="Name for the release; it does not move.")
@click.option("--no-publish", is_flag=True, help="Stop after the audit.")
@click.option("--rebase", is_flag=True, help="When somebody publishes meanwhile, build again on their release.")
@click.option("--allow-empty", multiple=True, metavar="TABLE", help="Table that may lose all its rows; repeatable.")
@click.option("--full-refresh", is_flag=True, help="Make every row anew; the rows are the same, always.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; dbt's output goes to stderr.")
def build_release(
    tag: str | None, no_publish: bool, rebase: bool, allow_empty: tuple[str, ...], full_refresh: bool, as_json: bool
) -> None:
    """Run dbt, audit every table against its contract, and publish them as a release."""
    from lake.config import lake_paths
    from lake.releases.build import build

    def say(line: str) -> None:
        click.echo(line, err=as_json)

    if tag and no_publish:
        raise UsageError("--tag names a release, and --no-publish makes none. Leave one of them out.")
    built = build(lake_paths(), tag, not no_publish, rebase, allow_empty, say, as_json, full_refresh)
    print_json(built.as_json()) if as_json else click.echo(built.as_text())


@main.command("audit")
@click.option("--allow-empty", multiple=True, metavar="TABLE", help="Table that may lose all its rows; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def audit_build(allow_empty: tuple[str, ...], as_json: bool) -> None:
    """Hold the last build against its contracts; exit 1 and show the rows where a check does not pass."""
    from lake.config import lake_paths
    from lake.releases.audit import audit

    audited = audit(lake_paths(), allow_empty, lambda line: click.echo(line, err=as_json))
    if as_json:
        print_json({"tables": audited.tables, "checks": audited.checks})
    else:
        click.echo(f"{audited.checks} checks on {audited.tables} tables passed")


@main.command("publish")
@click.option("--tag", help="Name for the release.")
@click.option("--force", is_flag=True, help="Move the tag when it names another release.")
@click.option("--allow-empty", multiple=True, metavar="TABLE", help="Table that may lose all its rows; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the release as one JSON object.")
def publish_build(tag: str | None, force: bool, allow_empty: tuple[str, ...], as_json: bool) -> None:
    """Audit the last build and publish it, without building."""
    from lake.config import lake_paths
    from lake.releases.audit import audit
    from lake.releases.build import describe
    from lake.releases.publish import publish

    audited = audit(lake_paths(), allow_empty, lambda line: click.echo(line, err=as_json))
    published = publish(lake_paths(), tag, force, allow_empty, audited.invocation)
    print_json(published.release.as_json()) if as_json else click.echo(describe(published))


@main.command("releases")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_releases(as_json: bool) -> None:
    """List releases, the newest first, with their tags."""
    from lake.query.output import releases_as_json, releases_as_text
    from lake.query.query import Lake

    lake = Lake()
    print_json(releases_as_json(lake)) if as_json else click.echo(releases_as_text(lake))


@main.command("tag")
@click.argument("name")
@click.argument("release", default="")
@click.option("--force", is_flag=True, help="Move the tag when it names another release.")
def tag_release(name: str, release: str, force: bool) -> None:
    """Give RELEASE (a number or tag; default the last) the name NAME."""
    from lake.query.query import Lake

    lake = Lake()
    number = lake.release(release or None).number
    lake.refs.add_tag(name, number, force)
    click.echo(f"{name} names release {number}")


@main.command("diff")
@click.argument("first")
@click.argument("second")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def diff_releases(first: str, second: str, as_json: bool) -> None:
    """Count the rows added, removed and changed from release FIRST to SECOND, per table and slice."""
    from lake.query.diff import as_json as changes_as_json
    from lake.query.diff import as_text, diff
    from lake.query.query import Lake

    changes = diff(Lake(), first, second)
    print_json(changes_as_json(changes)) if as_json else click.echo(as_text(changes))


@main.command("gc")
@click.option("--keep-last", type=int, metavar="N", help="Delete older releases too, but those with a tag.")
@click.option("--dry-run", is_flag=True, help="Delete nothing; say what would go.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def collect_garbage(keep_last: int | None, dry_run: bool, as_json: bool) -> None:
    """Delete files, older than a day, that no release names; the files of deleted releases in a later run."""
    from lake.config import lake_paths
    from lake.releases.gc import collect

    collected = collect(lake_paths(), keep_last, dry_run)
    print_json(collected.as_json()) if as_json else click.echo(collected.as_text())


@main.command("sql")
@click.argument("query")
@click.option("--release", help="Number or tag; default the last, with raw.* as it is now.")
@click.option("--workspace", is_flag=True, help="Read what was built last here, published or not.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "parquet"]),
    default="table",
    show_default=True,
    help="json is one array.",
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write; default stdout.")
def run_sql(query: str, release: str | None, workspace: bool, form: str, out: Path | None) -> None:
    """Run one SELECT over a release's tables, raw.* and log.*; it reads, and can do nothing else."""
    from lake.query.output import write
    from lake.query.query import Lake

    with Lake().batches(query, release, workspace) as batches:
        write(batches, form, out)


@main.command("trace")
@click.argument("row_id")
@click.option("--release", help="Number or tag; default the last.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def trace_row(row_id: str, release: str | None, as_json: bool) -> None:
    """Show the life of a row: ROW_ID is an example or record id, or its first 8 or more digits."""
    from lake.query.query import Lake
    from lake.query.trace import as_text, trace

    life = trace(Lake(), row_id, release)
    print_json(life) if as_json else click.echo(as_text(life))


__all__ = ["InternalError", "main", "print_json"]
