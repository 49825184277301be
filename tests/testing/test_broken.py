"""What is left of the stacks that `faulthandler` writes: the code of agents."""

from __future__ import annotations

import os
from pathlib import Path

import toolpost
from toolpost.testing.broken import own_stacks

PACKAGE = Path(toolpost.__file__).parent
STDLIB = Path(os.__file__).parent
DUMP = f"""Timeout (0:00:01)!
Thread 0x00007f0000000001 (most recent call first):
  File "{STDLIB}/threading.py", line 331 in wait
  File "{PACKAGE}/testing/watchdog.py", line 69 in _watch

Thread 0x00007f0000000002 (most recent call first):
  File "{STDLIB}/re/__init__.py", line 166 in match
  File "/home/ada/agents/brain.py", line 5 in helper
  File "{STDLIB}/asyncio/runners.py", line 118 in run
  File "/home/ada/agents/brain.py", line 9 in run
  File "{PACKAGE}/host/agents.py", line 286 in body
  File "<frozen runpy>", line 88 in _run_code
"""


def test_threads_of_agents_are_shown_down_to_their_outermost_line() -> None:
    assert own_stacks(DUMP) == [
        "  thread (most recent call first):",
        f'    File "{STDLIB}/re/__init__.py", line 166 in match',
        '    File "/home/ada/agents/brain.py", line 5 in helper',
        f'    File "{STDLIB}/asyncio/runners.py", line 118 in run',
        '    File "/home/ada/agents/brain.py", line 9 in run',
    ]


def test_where_no_thread_is_in_an_agent_all_are_shown() -> None:
    lines = own_stacks(DUMP.partition("\n\n")[0])

    assert lines == [
        "  thread (most recent call first):",
        f'    File "{STDLIB}/threading.py", line 331 in wait',
        f'    File "{PACKAGE}/testing/watchdog.py", line 69 in _watch',
    ]


def test_a_fatal_error_shows_the_thread_that_met_it() -> None:
    dump = (
        "Fatal Python error: Segmentation fault\n\n"
        "Current thread 0x00007f01 (most recent call first):\n"
        '  File "/home/ada/agents/brain.py", line 3 in run\n\n'
        "Extension modules: _ctypes (total: 1)\n"
    )

    assert own_stacks(dump) == [
        "  thread (most recent call first):",
        '    File "/home/ada/agents/brain.py", line 3 in run',
    ]


def test_nothing_written_is_nothing_shown() -> None:
    assert own_stacks("") == []
