"""The results of cases that did not come to their end: their process died, or they broke through everything.

What `faulthandler` writes when a process ends hard is cut down to the code of agents.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from toolpost.secret import mask
from toolpost.testing.result import Result, as_word

_PACKAGE = str(Path(__file__).parent.parent)
_LIBRARIES = (str(Path(os.__file__).parent), sys.prefix)
_TIME_OUT = "Timeout ("
_THREAD = re.compile(r"^(?:Current t|T)hread 0x[0-9a-f]+ ")
_FRAME = re.compile(r'  File "(?P<file>.*)", line ')


def died(case: str, seconds: float, *, how: str, stacks: str, printed: str) -> Result:
    """The result of a case that took its process down.

    Args:
        case: Its name.
        seconds: How long it ran.
        how: How the process ended.
        stacks: What `faulthandler` wrote down.
        printed: What the case printed.
    """
    if stacks.startswith(_TIME_OUT):
        line = "timed out, in code that lets nothing else run"
    else:
        line = f"its process {how}"
    return Result(
        case=case,
        status="failed",
        seconds=seconds,
        failures=[line],
        report=_report(case, [line, *own_stacks(stacks)]),
        output=printed,
    )


def raised(case: str, seconds: float, error: BaseException) -> Result:
    """The result of a case out of which came an exception, such as an interrupt that an agent raised."""
    line = mask("it raised " + "".join(traceback.format_exception_only(error)).strip())
    whole = mask("".join(traceback.format_exception(error)))
    return Result(
        case=case,
        status="failed",
        seconds=seconds,
        failures=[line],
        report=_report(case, [line, *(f"  {each}" for each in whole.splitlines())]),
        is_stuck=True,  # nothing has cleaned up behind it
    )


def _report(case: str, lines: Iterable[str]) -> str:
    return "\n".join([*lines, "", f"again: toolpost test {as_word(case)}"])


def own_stacks(dump: str) -> list[str]:
    """The lines of each thread that is in an agent's code, the innermost first; all where none is."""
    threads = [each.splitlines() for each in dump.split("\n\n") if _FRAME.search(each)]
    own = [cut for each in threads if (cut := _up_to_own(each))]
    lines = [line for each in own or threads for line in each if not line.startswith(_TIME_OUT)]
    return [_THREAD.sub("  thread ", line) if _THREAD.match(line) else f"  {line}" for line in lines]


def _up_to_own(lines: list[str]) -> list[str]:
    """Without the frames outside the outermost one of an agent."""
    places = [place for place, line in enumerate(lines) if _is_own(line)]
    return lines[: places[-1] + 1] if places else []


def _is_own(line: str) -> bool:
    """Whether it is a frame of an agent, and not of toolpost, the standard library or a package."""
    frame = _FRAME.match(line)
    return frame is not None and not frame["file"].startswith(("<frozen ", _PACKAGE, *_LIBRARIES))
