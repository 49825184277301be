"""A scripted MCP server that does one thing badly. Standard library only, so it starts at once.

    odd.py MODE [--log FILE] [--n N] [--answers JSON]

`--log` records, a JSON line each, what it received and what it says of itself (`{"self": …}`). Without a
quirk (mode `honest`) it is a good server of 2025-11-25, with tools that break it on request. Calls of
`hold` are answered when `release` is called, the last first. A mode is a class in one of the files beside
this one; its docstring says the quirk.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # also where another script runs this one

from odd_base import Honest

for _file in Path(__file__).parent.glob("odd_*.py"):
    if _file.stem != "odd_http":
        importlib.import_module(_file.stem)


def _mode(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")


def _modes(root: type[Honest]) -> dict[str, Callable[[Path | None, float], Honest]]:
    found: dict[str, Callable[[Path | None, float], Honest]] = {_mode(root.__name__): root}
    for each in root.__subclasses__():
        found |= _modes(each)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=(modes := _modes(Honest)))
    parser.add_argument("--log", type=Path)
    parser.add_argument("--n", type=float, default=0)
    parser.add_argument("--answers", type=json.loads, default={}, help="see odd_wire.Answers")
    options = parser.parse_args()
    server = modes[options.mode](options.log, options.n)
    server.answers = options.answers
    try:
        server.run()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)


if __name__ == "__main__":
    main()
