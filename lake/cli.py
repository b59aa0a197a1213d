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


__all__ = ["InternalError", "main", "print_json"]
