"""The sync face: the async one, method by method, called from a thread.

It is derived and has no logic of its own. `awaited` stands for what an async agent awaits, `plain` for
what it calls: names, parameters and docstrings are those of the async method.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from toolpost.host.bridge import Bridge
from toolpost.host.face import Host, Toolings
from toolpost.host.handle import Tooling
from toolpost.model import JsonObject

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


A_co = TypeVar("A_co", covariant=True)


class _Face(Protocol[A_co]):
    """A sync object and the async one behind it."""

    @property
    def behind(self) -> A_co: ...
    @property
    def bridge(self) -> Bridge: ...


def awaited(method: Callable[Concatenate[A, P], Awaitable[R]]) -> Callable[Concatenate[_Face[A], P], R]:
    """The sync form of an async method."""

    @functools.wraps(method)
    def sync(self: _Face[A], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.bridge.wait_for(method, self.behind, *args, **kwargs)

    return sync


def plain(method: Callable[Concatenate[A, P], R]) -> Callable[Concatenate[_Face[A], P], R]:
    """A plain method, called on the loop."""

    @functools.wraps(method)
    def sync(self: _Face[A], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.bridge.call(method, self.behind, *args, **kwargs)

    return sync


class _Derived:
    """The two ends of every sync object."""

    def __init__(self, behind: Any, bridge: Bridge) -> None:
        self._behind = behind
        self._bridge = bridge

    @property
    def behind(self) -> Any:
        return self._behind

    @property
    def bridge(self) -> Bridge:
        return self._bridge

    def __repr__(self) -> str:
        return f"<sync {self._behind!r}>"


class SyncTooling(_Derived):
    """A handle on one tooling, for sync agents. See `Tooling`."""

    kind = plain(Tooling.kind)
    name = plain(Tooling.name)
    list_tools = awaited(Tooling.list_tools)
    call_tool = awaited(Tooling.call_tool)
    call_tool_blocking = awaited(Tooling.call_tool_blocking)
    is_open = plain(Tooling.is_open)
    cancel = awaited(Tooling.cancel)
    list_resources = awaited(Tooling.list_resources)
    read_resource = awaited(Tooling.read_resource)
    subscribe_resource_list = awaited(Tooling.subscribe_resource_list)
    unsubscribe_resource_list = awaited(Tooling.unsubscribe_resource_list)
    subscribe_resource = awaited(Tooling.subscribe_resource)
    unsubscribe_resource = awaited(Tooling.unsubscribe_resource)
    request = awaited(Tooling.request)


class SyncToolings(_Derived):
    """The toolings that this agent can use, by name."""

    def get(self, name: str) -> SyncTooling:
        return SyncTooling(self.bridge.call(self.behind.get, name), self.bridge)

    get.__doc__ = Toolings.get.__doc__  # not `wraps`: it would give the type of the async one too


class SyncHost(_Derived):
    """What a sync agent has of the house. See `Host`."""

    def __init__(self, host: Host, bridge: Bridge) -> None:
        super().__init__(host, bridge)
        self.tooling = SyncToolings(host.tooling, bridge)
        """`tooling.get(name)` gives a handle."""

    @property
    def name(self) -> str:
        """The agent's name in the config; `main` for a program."""
        return self.behind.name

    @property
    def params(self) -> JsonObject:
        """The table `params` of the agent's config."""
        return self.behind.params

    recv = awaited(Host.recv)
    try_recv = plain(Host.try_recv)
    log = plain(Host.log)
    now = plain(Host.now)
    sleep = awaited(Host.sleep)
