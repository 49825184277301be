"""Runs the client scenarios of the official conformance suite against toolpost, one after the other.

    run.py [--node PATH] [--only REGEX] [--keep FOLDER]

A scenario passes if the suite says so and each of its checks in required.toml was seen to succeed: the
suite alone lets a client pass that does nothing. One at a time, since one of them looks at the clock. Exits
1 if one fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SUITE = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")
CLIENT_SECS = 30
"""The suite's limit for the client; it ends the shell then, and not what the shell has started."""
LIMIT_SECS = 60
"""Ours for the suite with all that it has started."""


@dataclass(frozen=True)
class Scenario:
    """One run: a scenario of the suite on the wire of one protocol version."""

    wire: str
    name: str
    required: frozenset[str]


@dataclass(frozen=True)
class Verdict:
    """What came of it: nothing to complain of is a pass."""

    complaints: list[str]
    output: str


def scenarios() -> Iterator[Scenario]:
    with (HERE / "required.toml").open("rb") as file:
        for wire, named in tomllib.load(file).items():
            for name, table in named.items():
                checks: list[str] = table["checks"]
                yield Scenario(wire, name, frozenset(checks))


def run(scenario: Scenario, node: str, results: Path) -> Verdict:
    command = [node, str(SUITE), "client", "--scenario", scenario.name, "--spec-version", scenario.wire]
    command += ["--force"]  # extensions are on no wire's list
    # the suite splits the command at spaces, so it is told in relative paths
    python = os.path.relpath(sys.executable, HERE)
    command += ["--command", f"{python} adapter.py", "--timeout", str(CLIENT_SECS * 1000), "-o", str(results)]
    # its servers are on this machine, and they are reached directly
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    suite = subprocess.Popen(
        command,
        cwd=HERE,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = suite.communicate(timeout=LIMIT_SECS)
        complaints = [] if suite.returncode == 0 else [f"the suite exited with {suite.returncode}"]
    except subprocess.TimeoutExpired:
        output, complaints = "", [f"no end within {LIMIT_SECS} s"]
    finally:
        end(suite)
    output += "".join(file.read_text(errors="replace") for file in sorted(results.rglob("stderr.txt")))
    return Verdict(complaints + list(judge(checks(results), scenario.required)), output)


def end(suite: subprocess.Popen[str]) -> None:
    """End all that the suite has started."""
    try:
        os.killpg(suite.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    suite.wait()


def checks(results: Path) -> list[dict[str, Any]]:
    return [each for file in sorted(results.rglob("checks.json")) for each in json.loads(file.read_text())]


def judge(shown: list[dict[str, Any]], required: frozenset[str]) -> Iterator[str]:
    for check in shown:
        if check["status"] in ("FAILURE", "WARNING"):
            said = check.get("errorMessage") or check.get("description")
            yield f"{check['status']} {check['name']}: {said}"
    for name in sorted(required - {check["name"] for check in shown if check["status"] == "SUCCESS"}):
        yield f"not seen to succeed: {name}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the conformance suite's client scenarios.")
    parser.add_argument("--node", default="node", help="a Node.js of version 22 or newer")
    parser.add_argument("--only", default="", help="a pattern of the scenarios to run, as wire/name")
    parser.add_argument("--keep", type=Path, help="a folder for what the suite writes down")
    options = parser.parse_args()
    found = shutil.which(str(options.node))
    if found is None:
        parser.error(f"{options.node!r} cannot be run; `make conformance` installs one")
    node = str(Path(found).absolute())
    failed = 0
    chosen = [each for each in scenarios() if re.search(options.only, f"{each.wire}/{each.name}")]
    for each in chosen:
        place = f"{each.wire}-{each.name.replace('/', '-')}"
        results = (
            Path(tempfile.mkdtemp(prefix="conformance-")) if options.keep is None else options.keep / place
        )
        started = time.monotonic()
        verdict = run(each, node, results.absolute())
        passed = not verdict.complaints
        failed += not passed
        seconds = time.monotonic() - started
        sys.stdout.write(f"{'pass' if passed else 'FAIL'} {seconds:5.1f} s  {each.wire}  {each.name}\n")
        if not passed:
            sys.stdout.write("".join(f"        {line}\n" for line in verdict.complaints))
            sys.stdout.write(f"{verdict.output}\n")
        sys.stdout.flush()
        if options.keep is None:
            shutil.rmtree(results)
    sys.stdout.write(f"{len(chosen) - failed} of {len(chosen)} scenarios passed\n")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
