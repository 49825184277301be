"""Many agents on servers that are killed, stopped, delayed and started again: does everything promised hold?

    python -m tests.soak [--seed N] [--seconds S] [--calls N] [--agents N] [--subscriptions N] [--json]

Exits with 1 if a promise was broken, and tells the seed that does the same to the servers once more.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import time
from types import FrameType

from tests.soak.plan import Options
from tests.soak.run import soak


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    signal.raise_signal(signal.SIGINT)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, help="what is done when; by default another one each time")
    parser.add_argument(
        "--seconds", type=float, default=Options.seconds, help="the calls are spread over this"
    )
    parser.add_argument("--calls", type=int, default=Options.calls, help="queued calls, of all agents")
    parser.add_argument("--agents", type=int, default=Options.agents)
    parser.add_argument("--subscriptions", type=int, default=Options.subscriptions, help="of all agents")
    parser.add_argument("--faults", type=int, default=Options.faults, help="spread over the calls")
    parser.add_argument("--json", action="store_true", help="the report as JSON on stdout")
    given = parser.parse_args()
    options = Options(
        seed=random.SystemRandom().randrange(10**6) if given.seed is None else given.seed,
        seconds=given.seconds,
        calls=given.calls,
        agents=given.agents,
        subscriptions=given.subscriptions,
        faults=given.faults,
    )
    # Either ends it as Ctrl-C does, also where a shell had that ignored: no server that is stopped is left.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupt)
    started = time.monotonic()

    def tell(line: str) -> None:
        sys.stderr.write(f"{time.monotonic() - started:5.0f} s  {line}\n")

    tell(f"seed {options.seed}")
    report = soak(options, tell)
    broken = list(report.broken())
    sys.stdout.write(json.dumps(report.to_json(), indent=2) + "\n" if given.json else report.table() + "\n")
    for each in broken:
        sys.stderr.write(f"BROKEN  {each}\n")
    if broken:
        again = " ".join([*sys.argv[1:], "--seed", str(options.seed)])
        sys.stderr.write(f"the same again: python -m tests.soak {again}\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
