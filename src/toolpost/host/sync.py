"""The sync face: the async one, method by method, called from a thread.

It is derived and has no logic of its own. `_awaited` stands for what an async agent awaits, `_plain` for
what it calls: names, parameters and docstrings are those of the async method.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Concatenate, Generic, ParamSpec, TypeVar

from toolpost.host.bridge import Bridge
from toolpost.host.face import Host, Toolings
from toolpost.host.handle import Tooling
from toolpost.model import JsonObject

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")


class _Derived(Generic[A]):
    """A sync object: the async one behind it, and the way there."""

    def __init__(self, behind: A, bridge: Bridge) -> None:
        self._behind = behind
        self._bridge = bridge

    def __repr__(self) -> str:
        return f"<sync {self._behind!r}>"

    @staticmethod
    def _awaited(
        method: Callable[Concatenate[B, P], Awaitable[R]], undo: Callable[[B, R], None] | None = None
    ) -> Callable[Concatenate[_Derived[B], P], R]:
        """The sync form of an async method. `undo` takes a result back that an interrupted thread missed."""

        @functools.wraps(method)
        def sync(self: _Derived[B], /, *args: P.args, **kwargs: P.kwargs) -> R:
            behind = self._behind
            return self._bridge.cross(
                functools.partial(method, behind, *args, **kwargs),
                None if undo is None else functools.partial(undo, behind),
            )

        return sync

    @staticmethod
    def _begun(
        method: Callable[Concatenate[B, P], Awaitable[R]],
        begin: Callable[Concatenate[B, P], Awaitable[R]],
    ) -> Callable[Concatenate[_Derived[B], P], R]:
        """The sync form of an async method, of which a plain one gives what there is to wait for."""

        @functools.wraps(method)
        def sync(self: _Derived[B], /, *args: P.args, **kwargs: P.kwargs) -> R:
            return self._bridge.cross(functools.partial(begin, self._behind, *args, **kwargs), begins=True)

        return sync

    @staticmethod
    def _plain(
        method: Callable[Concatenate[B, P], R],
        undo: Callable[[B, R], None] | None = None,
        *,
        polls: bool = False,
    ) -> Callable[Concatenate[_Derived[B], P], R]:
        """A plain method, called on the loop. With one that `polls` an agent may wait for others."""

        @functools.wraps(method)
        def sync(self: _Derived[B], /, *args: P.args, **kwargs: P.kwargs) -> R:
            behind = self._behind
            return self._bridge.call(
                functools.partial(method, behind, *args, **kwargs),
                None if undo is None else functools.partial(undo, behind),
                polls=polls,
            )

        return sync


_awaited = _Derived._awaited  # pyright: ignore[reportPrivateUsage]: in the class for the sake of what it uses
_begun = _Derived._begun  # pyright: ignore[reportPrivateUsage]
_plain = _Derived._plain  # pyright: ignore[reportPrivateUsage]

_forsake = Tooling._forsake  # pyright: ignore[reportPrivateUsage]: no part of the interface
_begin_for_thread = Tooling._begin_for_thread  # pyright: ignore[reportPrivateUsage]: nor this
_put_back = Host._put_back  # pyright: ignore[reportPrivateUsage]: nor this


class SyncTooling(_Derived[Tooling]):
    """A handle on one tooling, for sync agents. See `Tooling`."""

    kind = _plain(Tooling.kind)
    name = _plain(Tooling.name)
    list_tools = _awaited(Tooling.list_tools)
    call_tool = _awaited(Tooling.call_tool, _forsake)
    call_tool_blocking = _begun(Tooling.call_tool_blocking, _begin_for_thread)
    is_open = _plain(Tooling.is_open, polls=True)
    cancel = _awaited(Tooling.cancel)
    list_resources = _awaited(Tooling.list_resources)
    read_resource = _awaited(Tooling.read_resource)
    subscribe_resource_list = _awaited(Tooling.subscribe_resource_list, _forsake)
    unsubscribe_resource_list = _awaited(Tooling.unsubscribe_resource_list)
    subscribe_resource = _awaited(Tooling.subscribe_resource, _forsake)
    unsubscribe_resource = _awaited(Tooling.unsubscribe_resource)
    request = _awaited(Tooling.request)


class SyncToolings(_Derived[Toolings]):
    """The toolings that this agent can use, by name."""

    def get(self, name: str) -> SyncTooling:
        return SyncTooling(self._bridge.call(lambda: self._behind.get(name)), self._bridge)

    get.__doc__ = Toolings.get.__doc__  # not `wraps`: it would give the type of the async one too


class SyncHost(_Derived[Host]):
    """What a sync agent has of the house. See `Host`."""

    def __init__(self, host: Host, bridge: Bridge) -> None:
        super().__init__(host, bridge)
        self.tooling = SyncToolings(host.tooling, bridge)
        """`tooling.get(name)` gives a handle."""

    @property
    def name(self) -> str:
        """The agent's name in the config; `main` for a program."""
        return self._behind.name

    @property
    def params(self) -> JsonObject:
        """The table `params` of the agent's config."""
        return self._behind.params

    recv = _awaited(Host.recv, _put_back)
    try_recv = _plain(Host.try_recv, _put_back, polls=True)
    log = _plain(Host.log)
    now = _plain(Host.now, polls=True)
    sleep = _awaited(Host.sleep)
