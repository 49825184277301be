"""One invocation: its config, its log, and what becomes of its errors.

def command(session): ...            # gives the exit status
Session.of(ctx, …).finish(command)   # and every expected error becomes one short paragraph
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from toolpost.cli import interrupts
from toolpost.cli.options import Direct, LogLevel, Shared
from toolpost.cli.terminal import OutputLost, Talk, printable

if TYPE_CHECKING:
    from toolpost.config import Config

DONE, FAILED, MISUSED = 0, 1, 2


class Session:
    """What a command works with."""

    def __init__(self, shared: Shared, direct: Direct | None = None) -> None:
        self._shared = shared
        self._direct = direct or Direct()
        self.talk = Talk()
        self._loaded: Config | None = None
        """Kept to the end: secrets are masked while they live."""

    @classmethod
    def of(
        cls,
        ctx: typer.Context,
        config: str | None,
        verbose: int,
        log_level: LogLevel | None,
        direct: Direct | None = None,
    ) -> Session:
        """With the shared options from before the command and after it."""
        before = ctx.obj if isinstance(ctx.obj, Shared) else Shared()
        return cls(before.then(config=config, verbose=verbose, log_level=log_level), direct)

    @property
    def reads_stdin(self) -> bool:
        """Whether the config comes from standard input."""
        return self._shared.config == "-"

    def config(self) -> Config:
        """The configuration, loaded once; its warnings are logged.

        Raises:
            ConfigError: It cannot be used.
        """
        if self._loaded is None:
            from toolpost.secret import get_logger

            self._loaded = self._load()
            for warning in self._loaded.warnings:
                get_logger("toolpost.config").warning("%s", warning)
        return self._loaded

    def target(self, words: Sequence[str | None]) -> tuple[str, list[str]]:
        """The tooling that the words of the command line start with, or that its options make; and the rest.

        Loads nothing: `check_tooling` does.

        Raises:
            UsageError: There is none, or the options contradict each other.
        """
        from toolpost.cli.direct import name_of
        from toolpost.errors import UsageError

        given = [each for each in words if each is not None]
        if (name := name_of(self._direct)) is not None:
            if self._shared.config is not None:
                raise UsageError(f"--{name} names a server of no config; leave -c/--config out")
            return name, given
        if not given:
            raise UsageError(
                "NAME is missing: a tooling of the config (`toolpost check` shows them);"
                " or give a server with --stdio 'COMMAND'"
            )
        return given[0], given[1:]

    def only_target(self, word: str | None) -> str:
        """The tooling of a command that takes nothing else; it is in the config.

        Raises:
            UsageError: There is none, or none of that name.
        """
        from toolpost.errors import UsageError

        name, rest = self.target([word])
        if rest:
            raise UsageError(f"{rest[0]!r} is one word too many: --{name} names the server already")
        self.check_tooling(name)
        return name

    def check_tooling(self, name: str) -> None:
        """Look a name up.

        Raises:
            UsageError: The config has no such tooling.
        """
        from toolpost.config.problems import nearest
        from toolpost.errors import UsageError

        config = self.config()
        if name not in config.tooling:
            known = nearest(name, config.tooling)
            raise UsageError(f"{config.label} has no tooling {name!r}; it has: {known}")

    def remember_tools(self, tooling: str, tools: Iterable[str]) -> None:
        """Keep the names of a configured tooling's tools, which completion offers then."""
        from toolpost.cli import names
        from toolpost.cli.direct import name_of
        from toolpost.secret import mask

        if name_of(self._direct) is None and not self.reads_stdin:
            names.remember(self._shared.config, tooling, (each for each in tools if mask(each) == each))

    def _load(self) -> Config:
        import os

        from toolpost.cli.direct import config_of, name_of
        from toolpost.config import load_config

        if name_of(self._direct) is None:
            return load_config(self._shared.config)
        return config_of(self._direct, os.environ)

    def finish(self, command: Callable[[Session], int]) -> NoReturn:
        """Run the command and exit with its status."""
        raise typer.Exit(self._status(command))

    def fail(self, text: str, *, label: str = "error") -> None:
        """Tell of an error: what, where, what to do."""
        from toolpost.secret import mask

        self.talk.progress("")
        self.talk.say(f"{self.talk.paint(label, '31;1')}: {printable(mask(text))}")

    def _status(self, command: Callable[[Session], int]) -> int:
        from toolpost.cli.logs import set_up_logging

        set_up_logging(self.talk, verbose=self._shared.verbose, level=self._shared.log_level)
        try:
            return command(self)
        except KeyboardInterrupt:
            self.fail("the command was ended before it was done", label="interrupted")
            return interrupts.STATUS
        except Exception as error:
            return self._told(_single(error))
        finally:
            self.talk.progress("")

    def _told(self, error: Exception) -> int:
        """Tell of an error that ends the command; gives the exit status."""
        from toolpost.errors import ConfigError, ToolpostError, UsageError

        match error:
            case ConfigError():
                self.fail(_listed(error.problems))
                return MISUSED
            case UsageError():
                self.fail(str(error))
                return MISUSED
            case ToolpostError():
                self.fail(_explained(error))
            case OutputLost(reader_left=True):
                pass  # it has what it wanted
            case OutputLost():
                self.fail(str(error))
            case _:
                self._report_unexpected(error)
        return FAILED

    def _report_unexpected(self, error: Exception) -> None:
        self.fail(
            f"{type(error).__name__}: {error} (this should not happen: please report it"
            f"{'' if self._shared.verbose else '; -v shows the traceback'})"
        )
        if self._shared.verbose:
            import traceback

            self.fail("".join(traceback.format_exception(error)), label="traceback")


def run_to_end(main: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run a coroutine on a loop of its own. SIGINT and SIGTERM cancel it, and it cleans up in peace.

    Raises:
        KeyboardInterrupt: One of them came.
    """
    import asyncio

    async def guarded() -> int:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        assert task is not None
        # by way of the loop: that wakes it, where it sleeps in its selector
        with interrupts.cancelling(lambda: void(loop.call_soon_threadsafe(task.cancel))):
            return await main()

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:
        if interrupts.seen():
            raise KeyboardInterrupt from None
        raise


def void(_value: object) -> None:
    """Nothing: for a lambda whose value nobody wants."""


def _single(error: Exception) -> Exception:
    """The error itself, where it is alone in a task group's."""
    alone: tuple[Exception, ...] = getattr(error, "exceptions", ())
    return _single(alone[0]) if len(alone) == 1 else error


def _listed(problems: Sequence[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    return "\n  ".join([f"{len(problems)} problems in the configuration", *problems])


def _explained(error: Exception) -> str:
    attempts: int | None = getattr(error, "attempts", None)
    hint = "\n  (a one-shot command tries twice at most; `toolpost run` waits as [tunables] say)"
    return f"{error}{hint if attempts is not None else ''}"
