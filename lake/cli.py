"""The command `lake`: each subcommand is a thin call on the library.

Nothing heavy is imported here; a subcommand imports its part when it runs, so that `lake --help` stays quick.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from lake.errors import InternalError, LakeError


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


__all__ = ["InternalError", "main", "print_json"]
