"""The tasks that turn sources into envelopes: one for each queued call, one for each subscription.

Whatever a backend does, a pump brings its source to an end: with the answer, with an `Error` that names
tooling, operation and cause, or by being cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from toolpost.errors import ToolpostError
from toolpost.events import Error, Event, ResourceListUpdated, ResourceUpdated
from toolpost.host.cancelling import is_cancelled
from toolpost.host.inbox import Inbox, Source
from toolpost.model import ToolResult
from toolpost.secret import get_logger, mask
from toolpost.tooling.port import CHANGED, Backend, Change, ToolCall

_log = get_logger("toolpost.host")


def started(backend: Backend, call: ToolCall) -> Awaitable[ToolResult]:
    """The call's outcome. Whatever the backend does in its synchronous part, this does not raise."""
    try:
        return backend.call_tool(call)
    except Exception as error:
        return _raising(error)


async def _raising(error: Exception) -> ToolResult:
    raise error


async def pump_call(inbox: Inbox, source: Source, outcome: Awaitable[ToolResult], tooling: str) -> None:
    """Deliver the outcome of a queued call."""
    try:
        result = await outcome
    except (Exception, asyncio.CancelledError) as error:
        _put_failure(inbox, source, tooling, error)
    else:
        _put_result(inbox, source, tooling, result)


def deliver_call(inbox: Inbox, source: Source, tooling: str, outcome: asyncio.Future[ToolResult]) -> None:
    """Deliver the outcome of a queued call, which is there."""
    try:
        result = outcome.result()
    except (Exception, asyncio.CancelledError) as error:
        _put_failure(inbox, source, tooling, error)
    else:
        _put_result(inbox, source, tooling, result)


def _put_result(inbox: Inbox, source: Source, tooling: str, result: ToolResult) -> None:
    if isinstance(result, ToolResult):  # pyright: ignore[reportUnnecessaryIsInstance]: users' backends
        inbox.put_outcome(source, result, "ended")
    else:
        wrong = TypeError(f"its backend answered with {type(result).__name__}, not with a ToolResult")
        _put_failure(inbox, source, tooling, wrong)


def _put_failure(
    inbox: Inbox, source: Source, tooling: str, error: Exception | asyncio.CancelledError
) -> None:
    inbox.put_outcome(source, failure(error, f"tooling {tooling!r}: call_tool"), "failed")


async def pump_subscription(
    inbox: Inbox, source: Source, backend: Backend, tooling: str, uri: str | None
) -> None:
    """Deliver the changes of a resource (`uri`) or of the list of resources (None)."""
    what = f"tooling {tooling!r}: {source.kind}" + ("" if uri is None else f" {uri!r}")
    try:
        changes = backend.subscribe_resource_list() if uri is None else backend.subscribe_resource(uri)
        async with changes as stream:
            async for change in stream:
                await inbox.put(source, await _event(change, backend, uri, what))
    except (Exception, asyncio.CancelledError) as error:
        await inbox.put_last(source, failure(error, what), "failed")
    else:
        inbox.end(source)


async def _event(change: Change, backend: Backend, uri: str | None, what: str) -> Event:
    if change is CHANGED:
        return await _read_back(backend, uri, what)
    if not isinstance(change, (ResourceListUpdated, ResourceUpdated, Error)):  # pyright: ignore[reportUnnecessaryIsInstance]: users' backends
        raise TypeError(f"its backend told of a change with {type(change).__name__}: {change!r}")
    return change


async def _read_back(backend: Backend, uri: str | None, what: str) -> Event:
    """The list, or the content, as it is after a change. A failure is an event: the next one may succeed."""
    try:
        if uri is None:
            return ResourceListUpdated(await backend.list_resources())
        content = await backend.read_resource(uri)
    except (Exception, asyncio.CancelledError) as error:
        return failure(error, f"{what}: reading it back")
    return ResourceUpdated(
        uri=content.uri,
        mime_type=content.mime_type,
        content=content.content,
        encoding=content.encoding,
        parts=content.parts,
    )


def failure(error: Exception | asyncio.CancelledError, what: str) -> Error:
    """An error as an event. toolpost's own texts name what failed; a foreign one is given its place.

    A cancellation of this task goes on.
    """
    if isinstance(error, asyncio.CancelledError):
        if is_cancelled():
            raise error
        return Error(f"{what}: its backend cancelled itself")
    if isinstance(error, ToolpostError):
        return Error(mask(str(error)))
    _log.error("%s raised", what, exc_info=error)
    return Error(mask(f"{what}: {type(error).__name__}: {error}"))
