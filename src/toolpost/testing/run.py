"""One case, run in this process: its agents on its toolings, watched, and then judged.

The thread that calls `run_case` runs the event loop, and is watched (`Watched`). What cannot be ended is told
of (`Result.is_stuck`), since only the end of the process ends it.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable

from toolpost.errors import ConfigError, ToolpostError
from toolpost.host.agents import load_agents
from toolpost.mock.backend import MockBackend
from toolpost.testing.case import Case
from toolpost.testing.modules import Imports, own_imports
from toolpost.testing.report import Findings, judge
from toolpost.testing.result import Result
from toolpost.testing.settling import settling
from toolpost.testing.watched import Watched
from toolpost.trace.log import Trace

OnStuck = Callable[[Result, Trace], None]


def run_case(case: Case, *, seed: int | None = None, on_stuck: OnStuck | None = None) -> tuple[Result, Trace]:
    """Run a case to its result. Raises for nothing that the case does.

    It blocks this thread, in which no event loop may run.

    Args:
        case: What to run.
        seed: Of a simulated run; None is the case's own.
        on_stuck: Called in another thread once it is certain that this one will never come back, with what
            is known by then. It can write that down and end the process.
    """
    run = _Run(case, case.settings.seed if seed is None else seed)
    with own_imports(case.config.import_path) as imports:

        def tell_stuck() -> None:
            if on_stuck is not None:
                on_stuck(run.result(imports, is_stuck=True), run.watched.trace)

        run.run(tell_stuck)
        return run.result(imports, is_stuck=run.watched.break_left_behind()), run.watched.trace


class _Run:
    """One case on its way."""

    def __init__(self, case: Case, seed: int) -> None:
        self._case = case
        self._seed = seed
        self._started = time.monotonic()
        self._error: ConfigError | None = None
        self._fault: str | None = None
        """What ended the run, where that was no agent."""
        self.watched = Watched(
            case.config,
            limit=case.settings.timeout_secs,
            seed=seed if case.is_simulated else None,
            around=lambda core: settling(core, case.expectations),
        )

    def run(self, on_stuck: Callable[[], None]) -> None:
        try:
            self.watched.run(lambda: load_agents(self._case.config), on_stuck=on_stuck)
        except ConfigError as error:
            self._error = error
        except ToolpostError as error:
            self._fault = str(error)
        except Exception as error:
            self._fault = "".join(traceback.format_exception(error))

    def result(self, imports: Imports, *, is_stuck: bool) -> Result:
        """What came of it, or has so far."""
        files = sorted({str(each) for each in (*self._case.files, *imports.modules().values())})
        core = self.watched.core
        return judge(
            self._case,
            Findings(
                outcomes=self.watched.outcomes,
                trace=self.watched.trace,
                mocks=self._mocks(),
                ended=self.watched.ended,
                starved=[] if core is None else core.starved,
                error=self._error,
                fault=self._fault,
                seconds=time.monotonic() - self._started,
                simulated_secs=self.watched.simulated_secs,
                seed=self._seed,
                files=files,
                is_stuck=is_stuck,
            ),
        )

    def _mocks(self) -> dict[str, MockBackend]:
        core = self.watched.core
        if core is None:
            return {}
        backends = {name: core.backend(name) for name in self._case.config.tooling}
        return {name: each for name, each in backends.items() if isinstance(each, MockBackend)}
