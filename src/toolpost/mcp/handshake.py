"""How a session and a server agree on a version of the protocol, in either era. Brings the SDK with it."""

from __future__ import annotations

from typing import cast

import anyio
import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolpost.mcp import malformed
from toolpost.mcp.callbacks import capabilities, client_info
from toolpost.mcp.faults import FinalFailure
from toolpost.mcp.handlers import Handlers
from toolpost.model import Json, JsonObject
from toolpost.secret import get_logger

PROBE_SECS = 2.0
"""How long a server may think about `server/discover` before `initialize` is sent as well."""
_NOT_MODERN = {types.METHOD_NOT_FOUND, types.INVALID_PARAMS, types.INVALID_REQUEST}
"""How servers of earlier eras answer `server/discover`."""

_log = get_logger("toolpost.mcp")


class Handshake:
    """The first words on one session."""

    def __init__(self, name: str, session: ClientSession, handlers: Handlers) -> None:
        self._name = name
        self._session = session
        self._handlers = handlers

    async def shake(self, *, pinned: str | None, skip_probe: bool) -> None:
        """Agree on a protocol version.

        Raises:
            MCPError: The server refused, or the line went down.
            FinalFailure: There is no version that both speak.
        """
        if pinned is not None:
            await self._speak(pinned)
        elif skip_probe:
            await self._initialize()
        else:
            await self._negotiate()

    async def _speak(self, pinned: str) -> None:
        """Agree on this version or none."""
        if pinned in MODERN_PROTOCOL_VERSIONS:
            try:
                self._adopt(await self._session.send_discover(pinned), pinned)
            except MCPError as error:
                if error.code not in _NOT_MODERN:
                    raise
                raise FinalFailure(
                    f"the server does not speak {pinned} (key `protocol`); it answered: {error.message}"
                ) from None
            return
        offer = types.InitializeRequestParams(
            protocol_version=pinned, capabilities=capabilities(self._handlers), client_info=client_info()
        )
        # Not `session.initialize`, which always offers the newest version: a server may then answer with a
        # version of its own, though it speaks the pinned one.
        result = await self._session.send_request(
            types.InitializeRequest(params=offer), types.InitializeResult
        )
        if result.protocol_version != pinned:
            answered = result.protocol_version
            raise FinalFailure(f"the server speaks {answered}, not {pinned} (key `protocol`)")
        self._session.adopt(result)
        await self._session.send_notification(types.InitializedNotification())

    async def _negotiate(self) -> None:
        """`server/discover` first; `initialize` as soon as that fails, or is not answered for a while.

        A slow server answers both, in order, and the first answer counts: its era is not misjudged.
        """
        refused: MCPError | FinalFailure | None = None
        async with anyio.create_task_group() as race:
            no_answer = anyio.Event()

            async def probe() -> None:
                try:
                    raw = await self._discover()
                    if self._session.protocol_version is None:
                        self._adopt(raw, None)
                except (MCPError, FinalFailure, ValidationError) as error:
                    _log.debug("tooling %r: no answer to server/discover to go by: %s", self._name, error)
                    no_answer.set()
                else:
                    race.cancel_scope.cancel()

            race.start_soon(probe)
            with anyio.move_on_after(PROBE_SECS):
                await no_answer.wait()
            try:
                await self._initialize_unless_modern()
            except (MCPError, FinalFailure) as error:
                refused = error
                await no_answer.wait()  # the probe's answer still decides, if one comes
            race.cancel_scope.cancel()
        if refused is not None and self._session.protocol_version is None:
            raise refused

    async def _discover(self) -> JsonObject:
        """What the server says of itself; asked again, once, in a version that it names as one of its own."""
        try:
            return await self._session.send_discover(LATEST_MODERN_VERSION)
        except MCPError as error:
            if (mutual := _mutual_version(error)) is None:
                raise
            return await self._session.send_discover(mutual)

    async def _initialize_unless_modern(self) -> None:
        try:
            await self._initialize()
        except MCPError as error:
            if (mutual := _mutual_version(error)) is None:
                raise
            self._adopt(await self._session.send_discover(mutual), None)

    async def _initialize(self) -> None:
        try:
            await self._session.initialize()
        except RuntimeError as error:  # the SDK's word for a version that it does not know
            raise FinalFailure(f"the server speaks no version that toolpost does: {error}") from None
        except ValidationError as error:
            problem = malformed.problem(error)
            raise FinalFailure(f"the server's answer to initialize is malformed: {problem}") from None

    def _adopt(self, raw: JsonObject, pinned: str | None) -> None:
        result = types.DiscoverResult.model_validate(raw)
        offered = [pinned] if pinned is not None else list(MODERN_PROTOCOL_VERSIONS)
        if not any(version in result.supported_versions for version in offered):
            spoken = ", ".join(result.supported_versions)
            raise FinalFailure(f"the server speaks {spoken}, not {' or '.join(offered)}")
        self._session.adopt(result)


def _mutual_version(error: MCPError) -> str | None:
    """The newest version without a handshake that both speak, where a server refuses for its version."""
    data: object = error.data
    supported = cast("JsonObject", data).get("supported") if isinstance(data, dict) else None
    if error.code != types.UNSUPPORTED_PROTOCOL_VERSION or not isinstance(supported, list):
        return None
    mutual = [version for version in MODERN_PROTOCOL_VERSIONS if version in cast("list[Json]", supported)]
    return mutual[-1] if mutual else None
