"""How long a process takes to start, and for what.

.venv/bin/python -m bench.alone.start
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from bench.alone.table import Table
from bench.cells import ROOT

TOOLPOST = str(Path(sys.executable).parent / "toolpost")
RUNS = {
    "Python itself": [sys.executable, "-c", "pass"],
    "`import toolpost`": [sys.executable, "-c", "import toolpost"],
    "`import mcp`, for comparison": [sys.executable, "-c", "import mcp"],
    "`toolpost --help`": [TOOLPOST, "--help"],
    "`toolpost test` of one file, in which every server is a mock": [
        *(TOOLPOST, "test", "examples/testing/first_call.test.toml")
    ],
    "`toolpost run` of the quickstart, the server included, which is one of the SDK's in Python": [
        *(TOOLPOST, "run", "-c", "examples/quickstart/toolpost.toml")
    ],
}
REPEATS = 5


def milliseconds(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return (time.perf_counter() - begun) * 1e3


def tables() -> list[Table]:
    """The one table."""
    rows = [
        [what, f"{median(milliseconds(command) for _ in range(REPEATS)):,.0f}"]
        for what, command in RUNS.items()
    ]
    return [Table("Start-up", "From the start of a process to its end.", ["", "ms"], rows)]


if __name__ == "__main__":
    for each in tables():
        print(each.markdown())
