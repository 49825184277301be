"""A request that is under way without a task of its own. Needs no SDK."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import anyio

from toolpost.mcp.clock import Clock, Limits
from toolpost.tooling.port import StartTask

T = TypeVar("T")
Onlooker: TypeAlias = Callable[[float, float | None, str | None], None]
"""Told how far a request has come: progress, what it will be at the end, the server's words."""


class Answer(asyncio.Future[T]):
    """A promise that waits for it goes on as it comes, not a turn of the loop later."""

    __slots__ = ("promise",)

    def __init__(self) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self.promise: Promise[Any] | None = None

    def set_result(self, result: T, /) -> None:
        super().set_result(result)
        self._tell()

    def set_exception(self, exception: type[BaseException] | BaseException, /) -> None:
        super().set_exception(exception)
        self._tell()

    def cancel(self, msg: Any | None = None) -> bool:
        is_cancelled = super().cancel(msg)
        if is_cancelled:
            self._tell()
        return is_cancelled

    def _tell(self) -> None:
        promise, self.promise = self.promise, None
        if promise is not None:
            promise.go_on()


class _Cancellable(Protocol):
    def cancel(self) -> object: ...


class Promise(asyncio.Future[T]):
    """The outcome of a request. Cancelling it gives the request up; running out of its limit does too.

    What asks is a coroutine, whose first part, up to the written request, is done by `drive`. The rest is
    done as each thing that it waits for comes: so it may wait for nothing but asyncio's futures, and must not
    ask which task it is in. A task for each request would cost more than the rest of it.
    """

    __slots__ = ("_asking", "_context", "_is_expired", "_limits", "_onlooker", "_waits_for", "clock")

    _asking: Coroutine[Any, Any, Any]

    def __init__(
        self,
        limits: Limits,
        clock: Clock,
        onlooker: Onlooker | None = None,
    ) -> None:
        """The onlooker is told of progress."""
        super().__init__(loop=asyncio.get_running_loop())
        self._limits = limits
        self.clock = clock
        self._onlooker = onlooker
        self._waits_for: _Cancellable | None = None
        self._context = contextvars.copy_context()
        """The caller's, for code of the user's that a task comes to: the answer brings another."""
        self._is_expired = False

    def drive(self, asking: Coroutine[Any, Any, Any]) -> Self:
        """Start, and go on until there is something to wait for."""
        self._asking = asking
        self._limits.start(self)
        self.go_on()
        return self

    def cancel(self, msg: Any | None = None) -> bool:
        """Give it up."""
        waits_for, self._waits_for = self._waits_for, None
        is_cancelled = super().cancel(msg)
        if waits_for is not None:
            waits_for.cancel()
        return is_cancelled

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Something came, if not the answer."""
        self._limits.restart(self)
        if self._onlooker is not None:
            self._onlooker(progress, total, message)

    def finish(self, came: Any) -> None:
        """The request has its answer, and this its outcome; where it takes more, see `hand_over`."""
        self.set_result(came)

    def fail(self, error: BaseException) -> None:
        """The request has failed."""
        self.set_exception(error)

    def hand_over(self, start_task: StartTask, rest: Callable[..., Awaitable[T]], *args: object) -> None:
        """It takes more than one request: a task does the rest."""
        self._context.run(start_task, self._see_to, rest, *args)

    def expire(self) -> None:
        """Its time is up."""
        if self._waits_for is not None:
            self._is_expired = True
            self._waits_for.cancel()

    def go_on(self, _: object = None) -> None:
        """What it waited for has come."""
        try:
            if self._is_expired or self.done():  # also where what it waited for had come, and not been told
                waits_for = self._asking.throw(asyncio.CancelledError())
            else:
                waits_for = self._asking.send(None)
        except StopIteration as end:
            self._settle(end.value, None)
        except (Exception, asyncio.CancelledError) as error:
            self._settle(None, error)
        else:
            waits_for._asyncio_future_blocking = False  # as a task does, for its `await` to be a sound one
            self._waits_for = waits_for
            if isinstance(waits_for, Answer):
                waits_for.promise = self
            else:
                waits_for.add_done_callback(self.go_on)

    def _settle(self, came: Any, error: BaseException | None) -> None:
        self._waits_for = None
        self._limits.stop(self)
        if self.done():
            return
        try:
            if error is None:
                self.finish(came)
            elif not isinstance(error, asyncio.CancelledError):
                self.fail(error)
            elif self._is_expired:
                self.fail(TimeoutError(self.clock.describe()))
            else:
                super().cancel()
        except Exception as problem:
            self.set_exception(problem)

    async def _see_to(self, rest: Callable[..., Awaitable[T]], *args: object) -> None:
        if self.done():  # given up before this has begun
            return
        try:
            with anyio.CancelScope() as self._waits_for:
                came = await rest(*args)
                if not self.done():
                    self.set_result(came)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                super().cancel()
            elif not self.done():
                self.set_exception(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._waits_for = None
