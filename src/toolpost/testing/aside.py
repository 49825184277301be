"""One case, run in a thread aside, for a program that must go on even where the case cannot be ended."""

from __future__ import annotations

import contextvars
import threading
from concurrent.futures import Future
from pathlib import Path

from toolpost.errors import ConfigError
from toolpost.testing.case import Case, load_case
from toolpost.testing.report import could_not_run
from toolpost.testing.result import Result
from toolpost.testing.run import run_case


def run_case_aside(path: Path) -> Result:
    """The result of the case in a test file. What it cannot end is left behind, and runs on in its thread."""
    path = _as_named_here(path)
    try:
        case = load_case(path)
    except ConfigError as error:
        return could_not_run(str(path), error)
    return _Aside(case).result()


def _as_named_here(path: Path) -> Path:
    """As somebody in the current folder would name it: reports tell how to run the case again."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


class _Aside:
    """A case on its way in a thread."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._settled: Future[Result] = Future()
        self._lock = threading.Lock()

    def result(self) -> Result:
        context = contextvars.copy_context()
        threading.Thread(target=lambda: context.run(self._run), name="toolpost case", daemon=True).start()
        return self._settled.result()

    def _run(self) -> None:
        try:
            result, _ = run_case(self._case, on_stuck=lambda result, _: self._settle(result))
            self._settle(result)
        except BaseException as error:
            self._settle(error)

    def _settle(self, end: Result | BaseException) -> None:
        """In this thread, or in the watchdog's where this one will never come back. The first counts."""
        with self._lock:
            if self._settled.done():
                return
            if isinstance(end, BaseException):
                self._settled.set_exception(end)
            else:
                self._settled.set_result(end)
