"""dbt imported once and the project parsed once, for all runs of one test process; each run is a fork of that.

A run of dbt spends some four seconds of CPU before its first model: imports, and reading or parsing the project. The
server pays them once. A fork begins where a process of its own would be after them and shares nothing with the next
one. A project of a test's own is parsed by each run, for the test may change its files.

The server reads a request a line on its input, {"arguments", "folder", "environment", "output"}, and answers with the
exit code of dbt.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def run(arguments: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run dbt in a fork of the server.

    Args:
        arguments: as on dbt's command line.
        folder: the working directory.
        environment: variables beside those of this process.

    Returns:
        Exit code, and what dbt wrote to stdout and stderr.
    """
    server = _server()
    assert server.stdin and server.stdout
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "output"
        request = {"arguments": arguments, "folder": str(folder), "output": str(output)}
        server.stdin.write(json.dumps(request | {"environment": {**os.environ, **environment}}) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        assert answer, f"the server ended: {server.wait()}"
        return int(answer), output.read_text()


@cache
def _server() -> subprocess.Popen[str]:
    """Start the server; it ends when its input does, at the latest with this process."""
    command = [sys.executable, "-c", "from tests.dbt_server import serve; serve()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
    atexit.register(server.communicate)
    return server


def serve() -> None:
    """Answer requests until the input ends."""
    import dbt.adapters.duckdb
    import dbt.cli.main

    import lake.dbt_plugin
    from lake.kernels import project

    # delta-rs and DuckDB are imported and not used: neither may be used before a fork.
    assert dbt.adapters.duckdb and lake.dbt_plugin
    project.digest(ROOT)  # the code of the kernels is read, and kept by the module
    answers = os.fdopen(os.dup(1), "w")
    manifests: dict[str, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        if Path(request["folder"]) == ROOT:
            name = Path(request["environment"]["LAKE_WORKSPACE"]).name  # the database's name stands in the manifest
            manifests[name] = manifest = manifests.get(name) or _parsed()
        else:
            manifest = None
        child = os.fork()
        if not child:
            sys.exit(_become_dbt(request, manifest))
        _, status = os.waitpid(child, 0)
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
        answers.flush()


def _parsed() -> Any:
    """Parse the project that the working directory is."""
    from dbt.cli.main import dbtRunner

    parsed = dbtRunner().invoke(["--quiet", "parse", "--profiles-dir", "lake"])
    assert parsed.success, parsed.exception
    return parsed.result


def _become_dbt(request: dict[str, Any], manifest: Any) -> int:
    """Do what dbt's command does, and return its exit code."""
    from dbt.cli.main import dbtRunner

    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(0)
    sys.argv = ["dbt", *request["arguments"]]  # where the macro `note_start` reads the command
    done = dbtRunner(manifest=manifest).invoke(request["arguments"])
    if done.exception:
        print(done.exception, file=sys.stderr)
    return 0 if done.success else 2 if done.exception else 1
