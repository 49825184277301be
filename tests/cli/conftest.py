"""For every test of the command line: a cache folder of its own, and commands without a process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.support import Ended
from toolpost.cli.app import app

Inside = Callable[..., Ended]
"""`toolpost …` in this process: what it costs is its server, and not an interpreter with its imports."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of a test stays in the user's cache folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.fixture
def inside(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Inside:
    """Run a command with standard output and standard error as files."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str | Path) -> Ended:
        capfd.readouterr()
        with _logging_restored(), pytest.raises(SystemExit) as ending:
            app([*map(str, words)], prog_name="toolpost")
        out, err = capfd.readouterr()
        assert isinstance(ending.value.code, int)
        return Ended(ending.value.code, out, err)

    return run


@contextmanager
def _logging_restored() -> Generator[None]:
    """A command sets up logging for a process of its own: here that must not outlive it."""
    loggers = [logging.getLogger(name) for name in ("", "toolpost.agent")]
    levels, handlers = [each.level for each in loggers], loggers[0].handlers[:]
    try:
        yield
    finally:
        loggers[0].handlers[:] = handlers
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        logging.captureWarnings(False)
