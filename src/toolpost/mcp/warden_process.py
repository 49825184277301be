"""The program of the warden; `warden.py` starts it, and says what it is for.

    python -I -S warden_process.py GRACE_SECS TERMINATE_SECS

A line on its stdin is a process group that has started, or with a minus one that is gone. When stdin ends,
toolpost is no more, and what is left is ended as toolpost does it: its own stdin has ended too, so it may
leave by itself, then come SIGTERM and SIGKILL. It is run by its path and imports nothing of toolpost, so
that it is there within milliseconds.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable

POLL_SECS = 0.02


def main(grace_secs: float, terminate_secs: float) -> None:
    """Watch, and end what is left. Bounded from the end of stdin on."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # who ends everything at once does not end it first
    left = still_there(registered(sys.stdin), within=grace_secs)
    send(left, signal.SIGTERM)
    left = still_there(left, within=terminate_secs)
    send(left, signal.SIGKILL)


def registered(lines: Iterable[str]) -> set[int]:
    """The groups that have started and are not gone, once there are no more lines."""
    groups: set[int] = set()
    for line in lines:
        group = int(line)
        if group > 0:
            groups.add(group)
        else:
            groups.discard(-group)
    return groups


def still_there(groups: set[int], within: float) -> set[int]:
    """Wait for groups to go; gives those that have not. One that has gone is never looked for again: its
    number may come to be another's.
    """
    deadline = time.monotonic() + within
    while (groups := {each for each in groups if is_there(each)}) and time.monotonic() < deadline:
        time.sleep(POLL_SECS)
    return groups


def is_there(group: int) -> bool:
    """Whether a group has a process, be it one that has exited and that nobody reaps."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        pass
    return True


def send(groups: set[int], number: signal.Signals) -> None:
    """Send a signal to all processes of some groups."""
    for group in groups:
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            pass


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]))
