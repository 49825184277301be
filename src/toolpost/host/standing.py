"""Where code stands that does not end: the lines of a task or a thread, as a traceback shows them."""

from __future__ import annotations

import asyncio
import sys
import sysconfig
import threading
import traceback
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from toolpost.errors import ToolpostError

_PACKAGE = str(Path(__file__).parent.parent)
_RUNS_AGENTS = str(Path(__file__).with_name("agents.py"))
"""The file from which agents' code is called, and their scripts are loaded."""
_RUNS_GUESTS = str(Path("/wasmtime/component/"))
_STDLIB = sysconfig.get_path("stdlib")
_INSTALLED = ("site-packages", "dist-packages")


def stack_of_task(task: asyncio.Task[Any]) -> traceback.StackSummary:
    """The lines that a task waits in, the outermost first. To be called on its loop."""
    frames: list[tuple[FrameType, int]] = []
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = _attribute(awaited, "frame")
        if isinstance(frame, FrameType):
            frames.append((frame, frame.f_lineno))
        awaited = _attribute(awaited, "await")
    return traceback.StackSummary.extract(iter(frames))


def stack_of_thread(thread: threading.Thread) -> traceback.StackSummary:
    """The lines that a thread is in; none where it has ended."""
    frame = sys._current_frames().get(thread.ident or 0)  # pyright: ignore[reportPrivateUsage]: the documented way
    return traceback.extract_stack(frame) if frame is not None else traceback.StackSummary()


def shown(stack: traceback.StackSummary) -> str:
    """A whole stack as text."""
    return "".join(stack.format())


def own_part(stack: traceback.StackSummary) -> traceback.StackSummary:
    """The frames of an agent's code alone, from where it is called to where it calls into toolpost again."""
    starts = [place for place, frame in enumerate(stack) if frame.filename == _RUNS_AGENTS]
    own: list[traceback.FrameSummary] = []
    for frame in stack[starts[-1] :] if starts else ():
        is_ours = frame.filename.startswith(_PACKAGE)
        if own and is_ours:
            break
        if own or not (is_ours or _is_machinery(frame.filename)):
            own.append(frame)
    return traceback.StackSummary.from_list(own)


def own_traceback(error: BaseException) -> TracebackType | None:
    """The traceback of an agent's failure from the agent's own code on.

    What toolpost raises on purpose says all in its text: of that, not where in toolpost it was raised either.
    """
    links: list[TracebackType] = []
    link = error.__traceback__
    while link is not None:
        filename = link.tb_frame.f_code.co_filename
        is_ours = filename.startswith(_PACKAGE)
        if links and is_ours and isinstance(error, ToolpostError):
            break
        if links or not (is_ours or _is_machinery(filename)):
            links.append(link)
        link = link.tb_next
    whole: TracebackType | None = None
    for each in reversed(links):
        whole = TracebackType(whole, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return whole or error.__traceback__


def own_line(stack: traceback.StackSummary) -> str:
    """The innermost line of an agent's own code, in words; empty where there is none."""
    own = own_part(stack)
    for frame in reversed(own):
        if not _is_machinery(frame.filename):
            return f"line {frame.lineno} of {frame.filename}, in {frame.name}: {frame.line}"
    return ""


def _is_machinery(filename: str) -> bool:
    """Of what calls agents for toolpost: `threading`, `asyncio`, `importlib`, and `wasmtime` for guests."""
    if filename.startswith("<frozen ") or _RUNS_GUESTS in filename:
        return True
    return filename.startswith(_STDLIB) and not any(each in filename for each in _INSTALLED)


def _attribute(awaited: object, name: str) -> Any:
    """Of a coroutine, a generator, or an asynchronous generator."""
    names = (
        (f"cr_{name}", f"gi_{name}", f"ag_{name}")
        if name != "await"
        else ("cr_await", "gi_yieldfrom", "ag_await")
    )
    return next((value for each in names if (value := getattr(awaited, each, None)) is not None), None)
