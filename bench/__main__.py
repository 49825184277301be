"""Measures toolpost beside its peers and alone, and writes what came of it.

    python -m bench             all of it, to bench/results.md and bench/chart.svg
    python -m bench --quick     toolpost, the SDK and the floor, in two minutes, to the terminal

Progress goes to stderr, and at the end which bars are missed.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from bench import chart
from bench.alone import growth, layers, speed, start, weight
from bench.alone.table import Table
from bench.bars import verdicts
from bench.cells import ROOT, python_of
from bench.page import page
from bench.rounds import CLIENTS, QUICK_CLIENTS, Plan, Progress, run
from bench.summary import BASE, Summary

HERE = Path(__file__).parent
SCRIPTS = {"Gates": "gates.py", "Simulated runs": "simulation.py", "Guests": "wasm.py"}
"""Measurements that stand for themselves: what they print is taken over."""
SCRIPT_SECS = 300.0
WHOLE = Plan(CLIENTS, rounds=5, seconds=0.6, updates=20_000)
QUICK = Plan(QUICK_CLIENTS, rounds=1, seconds=0.3, updates=5_000)


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, _end)
    progress = Progress()
    if python_of(BASE) is None:
        print("the SDK is not installed, which all is compared with: run `make peers`", file=sys.stderr)
        return 2
    plan = QUICK if options.quick else WHOLE
    if options.rounds is not None:
        plan = replace(plan, rounds=options.rounds)
    summary = run(plan, progress)
    alone = list(_alone(progress, quick=options.quick))
    captured = [] if options.quick else [(title, _output(name, progress)) for title, name in SCRIPTS.items()]
    text = page(summary, alone, captured)
    if options.quick:
        print(text)
    else:
        (HERE / "results.md").write_text(text)
        (HERE / "chart.svg").write_text(chart.draw(summary))
        progress.say("written: bench/results.md, bench/chart.svg")
    if options.json is not None:
        options.json.write_text(json.dumps(_as_json(summary, alone), indent=1))
    _tell_missed(summary, progress)
    return 0


def _end(number: int, frame: object) -> None:
    """In place of dying at once: so what was started is ended too."""
    sys.exit(128 + number)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few clients, one short round; writes no page")
    parser.add_argument("--rounds", type=int, help="how many rounds (5; with --quick 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure of every round as JSON")
    return parser.parse_args()


def _alone(progress: Progress, *, quick: bool) -> list[Table]:
    progress.say("speed without a server")
    tables = speed.tables(5_000, 1) if quick else speed.tables()
    tables += layers.tables() + start.tables()
    tables += growth.tables(1_000 if quick else growth.SIZES[-1], progress.say)
    progress.say("memory")
    return tables + weight.tables()


def _output(name: str, progress: Progress) -> str:
    """What a script prints, or why it failed."""
    progress.say(name)
    command = [sys.executable, str(HERE / name)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=SCRIPT_SECS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it took more than {SCRIPT_SECS:g} s"
    return done.stdout if done.returncode == 0 else done.stderr


def _as_json(summary: Summary, alone: list[Table]) -> object:
    tables = [{"title": each.title, "head": each.head, "rows": each.rows} for each in alone]
    bars = [
        {"what": each.what, "transport": each.transport, "bar": each.limit, "value": each.value}
        for each in verdicts(summary)
    ]
    return {**summary.to_json(), "bars": bars, "alone": tables}


def _tell_missed(summary: Summary, progress: Progress) -> None:
    for each in verdicts(summary):
        if not each.passed:
            value = "not measured" if each.value is None else f"{each.value:.3g}"
            progress.say(f"missed: {each.what}, {each.transport}: {value} (bar: {each.limit})")


if __name__ == "__main__":
    sys.exit(main())
