"""The host's side of toolpost.wit: each function of it, on top of the sync face.

A failure that an agent may react to is the error of the function's `result`. All else that is raised here,
the end of an agent above all, is for the guest's run to keep: it ends the guest inside the call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, ParamSpec

from wasmtime import StoreContext
from wasmtime.component import LinkerInstance, Record, ResourceAny, ResourceHost, ResourceType, Variant

from toolpost.errors import UsageError
from toolpost.host.sync import SyncHost, SyncTooling
from toolpost.wasm import convert
from toolpost.wasm.binding import add_func
from toolpost.wasm.convert import text

MOST_HANDLES = MOST_SUBSCRIPTIONS = 1024
"""How many a guest may have at once."""
_TYPE = 1
"""How the binding knows the resource `tooling`, among a guest's: it is the only one of ours."""

P = ParamSpec("P")


def _either(function: Callable[P, object]) -> Callable[P, Variant]:
    def call(*args: P.args, **kwargs: P.kwargs) -> Variant:
        try:
            return Variant("ok", function(*args, **kwargs))
        except Exception as error:
            return Variant("err", text(f"{type(error).__name__}: {error}"))

    return call


@_either
def _list_tools(handle: SyncTooling) -> list[Record]:
    return [convert.tool(each) for each in handle.list_tools()]


@_either
def _call_tool(handle: SyncTooling, name: str, arguments: str, timeout: float | None) -> str:
    return handle.call_tool(name, arguments, timeout=timeout)


@_either
def _call_tool_blocking(handle: SyncTooling, name: str, arguments: str, timeout: float | None) -> Record:
    return convert.tool_result(handle.call_tool_blocking(name, arguments, timeout=timeout))


@_either
def _list_resources(handle: SyncTooling) -> list[Record]:
    return [convert.resource_info(each) for each in handle.list_resources()]


@_either
def _read_resource(handle: SyncTooling, uri: str) -> Record:
    return convert.resource_content(handle.read_resource(uri))


METHODS: dict[str, Callable[Concatenate[SyncTooling, ...], Any]] = {
    "kind": lambda handle: text(handle.kind()),
    "name": lambda handle: text(handle.name()),
    "list-tools": _list_tools,
    "call-tool": _call_tool,
    "is-open": SyncTooling.is_open,
    "cancel": SyncTooling.cancel,
    "call-tool-blocking": _call_tool_blocking,
    "list-resources": _list_resources,
    "read-resource": _read_resource,
    "unsubscribe-resource-list": SyncTooling.unsubscribe_resource_list,
    "unsubscribe-resource": SyncTooling.unsubscribe_resource,
}
"""Those of the resource `tooling`, but for these:"""
SUBSCRIPTIONS: dict[str, Callable[Concatenate[SyncTooling, ...], str]] = {
    "subscribe-resource-list": SyncTooling.subscribe_resource_list,
    "subscribe-resource": SyncTooling.subscribe_resource,
}


@_either
def _recv(host: SyncHost, timeout: float | None) -> Record:
    return convert.envelope(host.recv(timeout))


@_either
def _try_recv(host: SyncHost) -> Record | None:
    envelope = host.try_recv()
    return None if envelope is None else convert.envelope(envelope)


HOST: dict[str, Callable[Concatenate[SyncHost, ...], Any]] = {
    "recv": _recv,
    "try-recv": _try_recv,
    "log": SyncHost.log,
    "name": lambda host: text(host.name),
    "params": lambda host: convert.json_text(host.params),
    "now": SyncHost.now,
    "sleep": SyncHost.sleep,
}
"""Those of the interface `host`."""

Guard = Callable[[Callable[[], Any]], Any]
"""Runs one call, and keeps what it raises."""


class Toolings:
    """The handles that a guest holds, and what it has opened with them."""

    def __init__(self, host: SyncHost) -> None:
        self._host = host
        self._held: dict[int, SyncTooling] = {}
        self._last = 0
        self._subscriptions: set[str] = set()
        """Some may have ended."""

    def define(self, instance: LinkerInstance, guard: Guard) -> None:
        """Put the interface `tooling` into a linker."""

        def drop(_store: StoreContext, number: int) -> None:
            self._held.pop(number, None)

        instance.add_resource("tooling", ResourceType.host(_TYPE), drop)
        add_func(instance, "get", _guarded(self._get, guard))
        subscriptions = {name: self._bounded(method) for name, method in SUBSCRIPTIONS.items()}
        for name, method in (METHODS | subscriptions).items():
            add_func(instance, f"[method]tooling.{name}", self._bound(method, guard))

    @_either
    def _get(self, name: str) -> ResourceHost:
        if len(self._held) >= MOST_HANDLES:
            raise UsageError(f"this guest holds {len(self._held)} handles of toolings: drop some first")
        handle = self._host.tooling.get(name)
        self._last += 1
        self._held[self._last] = handle
        return ResourceHost.own(self._last, _TYPE)

    def _bounded(self, method: Callable[Concatenate[SyncTooling, ...], str]) -> Callable[..., Variant]:
        @_either
        def subscribe(handle: SyncTooling, *args: str) -> str:
            if len(self._subscriptions) >= MOST_SUBSCRIPTIONS:
                self._subscriptions = {each for each in self._subscriptions if handle.is_open(each)}
            if len(self._subscriptions) >= MOST_SUBSCRIPTIONS:
                raise UsageError(f"this guest has {MOST_SUBSCRIPTIONS} subscriptions: end some first")
            uuid = method(handle, *args)
            self._subscriptions.add(uuid)
            return uuid

        return subscribe

    def _bound(
        self, method: Callable[Concatenate[SyncTooling, ...], Any], guard: Guard
    ) -> Callable[..., Any]:
        def call(store: StoreContext, borrowed: ResourceAny, *args: Any) -> Any:
            def on_handle() -> Any:
                # `to_host` also gives the borrow up: one that is kept until the call is over is a trap
                return method(self._held[borrowed.to_host(store).rep], *args)

            return guard(on_handle)

        return call


def define_host(instance: LinkerInstance, host: SyncHost, guard: Guard) -> None:
    """Put the interface `host` into a linker."""
    for name, function in HOST.items():
        add_func(instance, name, _guarded(partial(function, host), guard))


def _guarded(function: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    def call(_store: StoreContext, *args: Any) -> Any:
        return guard(partial(function, *args))

    return call
