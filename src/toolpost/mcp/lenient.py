"""A dispatcher between a wire and the session. Brings the SDK with it.

It mends results on their way: the session refuses a whole answer for one bad part of it, see mcp/results.py
and mcp/listed.py. And it tells of notifications as they are read: what the session makes of one costs more
than what a change calls for, and servers send changes by the thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import TaskStatus
from mcp.shared.dispatcher import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    run_notify_intercept,
)
from mcp.shared.transport_context import TransportContext

from toolpost.mcp import listed, results
from toolpost.model import JsonObject

Listener = Callable[[str, Mapping[str, Any] | None], bool]
"""Takes the method and the params of a notification; true: the session need not see it."""


class Lenient(Dispatcher[TransportContext]):
    """Passes everything on to a wire, and what comes back as the session lets it through."""

    def __init__(
        self,
        wire: Dispatcher[TransportContext],
        name: str,
        is_modern: Callable[[], bool],
        listener: Listener,
    ) -> None:
        self._wire = wire
        self._name = name
        self._is_modern = is_modern
        self._listener = listener

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        def intercept(method: str, params: Mapping[str, Any] | None) -> bool:
            is_taken = run_notify_intercept(on_notify_intercept, method, params)
            return is_taken or self._listener(method, params)

        await self._wire.run(on_request, on_notify, intercept, task_status=task_status)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> JsonObject:
        result = await self._wire.send_raw_request(method, params, opts)
        if method == "initialize":
            await anyio.lowlevel.checkpoint()  # cancelled here, if the probe's answer came just before
        modern = self._is_modern()
        if method == "tools/call":
            return results.enveloped(result, modern=modern)
        if method in listed.LISTS:
            result = listed.enveloped(method, result, self._name, modern=modern)
        if modern and (method in listed.LISTS or method == "resources/read"):
            result = results.completed(result)
        return result

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        await self._wire.notify(method, params, opts)
