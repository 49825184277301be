"""toolpost: the tool layer for Python agents.

    async with toolpost.open_host("toolpost.toml") as host:
        files = host.tooling.get("files")
        print(await files.list_tools())

Everything public is named here, and only here. Names are imported when they are first used, so that
`import toolpost` costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolpost.aliases import model_names as model_names
    from toolpost.config import AgentConfig as AgentConfig
    from toolpost.config import Config as Config
    from toolpost.config import ToolingConfig as ToolingConfig
    from toolpost.config import Tunables as Tunables
    from toolpost.config import load_config as load_config
    from toolpost.errors import AgentStopped as AgentStopped
    from toolpost.errors import ConfigError as ConfigError
    from toolpost.errors import ConnectFailed as ConnectFailed
    from toolpost.errors import ConnectionLost as ConnectionLost
    from toolpost.errors import GuestFailed as GuestFailed
    from toolpost.errors import HostClosed as HostClosed
    from toolpost.errors import RecvTimeout as RecvTimeout
    from toolpost.errors import RequestTimeout as RequestTimeout
    from toolpost.errors import ResourceNotFound as ResourceNotFound
    from toolpost.errors import ScriptError as ScriptError
    from toolpost.errors import ServerError as ServerError
    from toolpost.errors import ToolpostError as ToolpostError
    from toolpost.errors import TooManyOpenCalls as TooManyOpenCalls
    from toolpost.errors import UnknownTooling as UnknownTooling
    from toolpost.errors import Unsupported as Unsupported
    from toolpost.errors import UsageError as UsageError
    from toolpost.events import Envelope as Envelope
    from toolpost.events import Error as Error
    from toolpost.events import Event as Event
    from toolpost.events import ResourceListUpdated as ResourceListUpdated
    from toolpost.events import ResourceUpdated as ResourceUpdated
    from toolpost.events import Shutdown as Shutdown
    from toolpost.host.agents import Outcome as Outcome
    from toolpost.host.face import Host as Host
    from toolpost.host.face import Toolings as Toolings
    from toolpost.host.handle import Tooling as Tooling
    from toolpost.host.host import OpenHost as OpenHost
    from toolpost.host.host import Opening as Opening
    from toolpost.host.host import RunReport as RunReport
    from toolpost.host.host import SyncOpenHost as SyncOpenHost
    from toolpost.host.host import open_host as open_host
    from toolpost.host.host import open_host_sync as open_host_sync
    from toolpost.host.host import run as run
    from toolpost.host.host import run_async as run_async
    from toolpost.host.sync import SyncHost as SyncHost
    from toolpost.host.sync import SyncTooling as SyncTooling
    from toolpost.host.sync import SyncToolings as SyncToolings
    from toolpost.mcp.handlers import Handlers as Handlers
    from toolpost.mock.backend import RecordedCall as RecordedCall
    from toolpost.mock.steps import PlacedStep as PlacedStep
    from toolpost.mock.view import Mock as Mock
    from toolpost.model import Json as Json
    from toolpost.model import ResourceContent as ResourceContent
    from toolpost.model import ResourceInfo as ResourceInfo
    from toolpost.model import Tool as Tool
    from toolpost.model import ToolResult as ToolResult
    from toolpost.model import to_json as to_json
    from toolpost.secret import Secret as Secret
    from toolpost.tooling.port import CHANGED as CHANGED
    from toolpost.tooling.port import Backend as Backend
    from toolpost.tooling.port import Change as Change
    from toolpost.tooling.port import Changes as Changes
    from toolpost.tooling.port import Site as Site
    from toolpost.tooling.port import ToolCall as ToolCall
    from toolpost.tooling.registry import Kind as Kind
    from toolpost.tooling.registry import register_tooling as register_tooling
    from toolpost.trace.events import AgentOutcome as AgentOutcome
    from toolpost.trace.events import Call as Call
    from toolpost.trace.events import Closed as Closed
    from toolpost.trace.events import Inbound as Inbound
    from toolpost.trace.events import Opened as Opened
    from toolpost.trace.events import State as State
    from toolpost.trace.events import TraceEvent as TraceEvent
    from toolpost.trace.log import Trace as Trace

_HOMES = {
    "aliases": "model_names",
    "config": "AgentConfig Config ToolingConfig Tunables load_config",
    "errors": (
        "AgentStopped ConfigError ConnectFailed ConnectionLost GuestFailed HostClosed RecvTimeout "
        "RequestTimeout ResourceNotFound ScriptError ServerError TooManyOpenCalls ToolpostError "
        "UnknownTooling Unsupported UsageError"
    ),
    "events": "Envelope Error Event ResourceListUpdated ResourceUpdated Shutdown",
    "host.agents": "Outcome",
    "host.face": "Host Toolings",
    "host.handle": "Tooling",
    "host.host": "OpenHost Opening RunReport SyncOpenHost open_host open_host_sync run run_async",
    "host.sync": "SyncHost SyncTooling SyncToolings",
    "mcp.handlers": "Handlers",
    "mock.backend": "RecordedCall",
    "mock.steps": "PlacedStep",
    "mock.view": "Mock",
    "model": "Json ResourceContent ResourceInfo Tool ToolResult to_json",
    "secret": "Secret",
    "tooling.port": "Backend CHANGED Change Changes Site ToolCall",
    "tooling.registry": "Kind register_tooling",
    "trace.events": "AgentOutcome Call Closed Inbound Opened State TraceEvent",
    "trace.log": "Trace",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "CHANGED",
    "AgentConfig",
    "AgentOutcome",
    "AgentStopped",
    "Backend",
    "Call",
    "Change",
    "Changes",
    "Closed",
    "Config",
    "ConfigError",
    "ConnectFailed",
    "ConnectionLost",
    "Envelope",
    "Error",
    "Event",
    "GuestFailed",
    "Handlers",
    "Host",
    "HostClosed",
    "Inbound",
    "Json",
    "Kind",
    "Mock",
    "OpenHost",
    "Opened",
    "Opening",
    "Outcome",
    "PlacedStep",
    "RecordedCall",
    "RecvTimeout",
    "RequestTimeout",
    "ResourceContent",
    "ResourceInfo",
    "ResourceListUpdated",
    "ResourceNotFound",
    "ResourceUpdated",
    "RunReport",
    "ScriptError",
    "Secret",
    "ServerError",
    "Shutdown",
    "Site",
    "State",
    "SyncHost",
    "SyncOpenHost",
    "SyncTooling",
    "SyncToolings",
    "TooManyOpenCalls",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Tooling",
    "ToolingConfig",
    "Toolings",
    "ToolpostError",
    "Trace",
    "TraceEvent",
    "Tunables",
    "UnknownTooling",
    "Unsupported",
    "UsageError",
    "load_config",
    "model_names",
    "open_host",
    "open_host_sync",
    "register_tooling",
    "run",
    "run_async",
    "to_json",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("toolpost")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'toolpost' has no attribute {name!r}")
    value = getattr(import_module(f"toolpost.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
