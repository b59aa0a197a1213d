"""The command `lake`: each subcommand is a thin call on the library.

Nothing heavy is imported here; a subcommand imports its part when it runs, so that `lake --help` stays quick.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from lake.errors import ContractError, InternalError, LakeError


class Group(click.Group):
    """Turns our errors into one line on stderr and the exit code of their class."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand."""
        try:
            return super().invoke(ctx)
        except LakeError as error:
            click.echo(f"{type(error).__name__}: {error}", err=True)
            ctx.exit(error.exit_code)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="lakewright")
def main() -> None:
    """Land, build, audit, publish, query and train on the data of language models."""


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    json.dump(value, sys.stdout, ensure_ascii=False, default=str)
    sys.stdout.write("\n")


@main.group()
def contract() -> None:
    """Keep the files that follow from the contracts in step with them."""


@contract.command("sync")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 and list the files that differ (for CI).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def contract_sync(check: bool, as_json: bool) -> None:
    """Write models/**/*.yml (dbt) from contracts/**/*.yaml (ODCS)."""
    from lake.config import places
    from lake.contract import sync, unpaired

    project = places().project
    files = [str(f) for f in sync(project, check=check)]
    alone = unpaired(project)
    if as_json:
        print_json({"files": files, "unpaired": alone})
    else:
        click.echo("".join(f"{'differs' if check else 'written'}: {f}\n" for f in files), nl=False)
        click.echo("".join(f"unpaired: {line}\n" for line in alone), nl=False, err=True)
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

    if said := run_train_sft(job, as_json):
        click.echo(said)


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
@click.option("--kind", required=True, type=click.Choice(["traces", "web", "synthetic", "benchmark"]))
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
    from lake.land import land
    from lake.progress import shown

    with shown(quiet=as_json) as progress:
        summary = land(
            paths, kind, source, root=root, format=file_format, license=license_, options=options, amend=amend,
            progress=progress,
        )  # fmt: skip
    if as_json:
        print_json(summary.as_json())
    else:
        click.echo(summary.as_text())


@main.command("demo")
@click.option("--dir", "folder", default=".lake/demo", show_default=True, type=click.Path(path_type=Path))
@click.option("--steps", default=3, show_default=True, type=click.IntRange(0), help="Training steps; 0: no training.")
def demo(folder: Path, steps: int) -> None:
    """Run the whole path on made-up input with planted errors, and check that each of them is found."""
    from lake.demo import run

    run(folder, steps)


__all__ = ["InternalError", "main", "print_json"]
