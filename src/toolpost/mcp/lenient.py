"""A dispatcher that mends results on their way to the session. Brings the SDK with it.

The session refuses a whole answer for one bad part of it: see mcp/results.py and mcp/listed.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import TaskStatus
from mcp.shared.dispatcher import CallOptions, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.transport_context import TransportContext

from toolpost.mcp import listed, results
from toolpost.model import JsonObject


class Lenient(Dispatcher[TransportContext]):
    """Passes everything on to a wire, and what comes back as the session lets it through."""

    def __init__(self, wire: Dispatcher[TransportContext], name: str, is_modern: Callable[[], bool]) -> None:
        self._wire = wire
        self._name = name
        self._is_modern = is_modern

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        await self._wire.run(on_request, on_notify, on_notify_intercept, task_status=task_status)

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
