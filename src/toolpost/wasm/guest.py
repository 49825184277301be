"""One guest: a component that runs as a sync agent does, in the thread of its own that it is called in.

It can be ended while it computes, which no Python agent can: its engine's epoch moves on, and its code traps
at the next turn of a loop or entry of a function. So each guest has its own engine.

What ends a guest from inside a host call (the agent was stopped, say) is kept here, and raised when the guest
has been unwound: through its code goes no exception.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

from wasmtime import Engine, ExitTrap, Store, WasiConfig, WasmtimeError
from wasmtime.component import Linker, Variant

from toolpost.config import Sandbox
from toolpost.errors import AgentStopped, GuestFailed
from toolpost.host.sync import SyncHost
from toolpost.wasm.calls import Toolings, define_host
from toolpost.wasm.engine import Compiled, new_engine
from toolpost.wasm.output import Lines
from toolpost.wasm.watch import WATCH
from toolpost.wasm.wit import PACKAGE, VERSION

LAST_STRETCH_SECS = 0.5
"""How long a guest that was stopped in a host call may go on after it. The next call ends it, as a rule."""
MOST_INSTANCES, MOST_TABLES, MOST_TABLE_ELEMENTS = 256, 16, 65_536
"""Core modules at work, their tables, and the elements of each: they count for no memory of the guest's own.
A Python has 18, 2 and 6,000; each library in C that it brings is one module more."""


class Guest:
    """An agent's function, `run(host)`, that is a component. It runs once."""

    def __init__(self, name: str, compiled: Compiled, sandbox: Sandbox) -> None:
        self._name = name
        self._compiled = compiled
        self._sandbox = sandbox
        self._engine: Engine | None = None
        self._limit = math.inf
        """How long it may compute, once the house ends it."""
        self._limited_at = 0.0
        self._is_stopped = False
        self._computes_since: float | None = None
        """None while it is in a host call."""
        self._lock = threading.Lock()
        self._ended_by: BaseException | None = None
        """What is raised once it is unwound, whatever it did. The first counts."""

    def __call__(self, host: SyncHost) -> str | None:
        engine = new_engine()
        store = self._new_store(engine)
        self._engine = engine
        WATCH.add(self)
        try:
            if self._is_stopped:  # the house could not tell this engine
                engine.increment_epoch()
            return self._run(engine, store, host)
        finally:
            WATCH.remove(self)
            self._engine = None
            store.close()

    def limit(self, seconds: float) -> None:
        """The house ends it: from now on it computes for so long at most; 0 stops it. From any thread."""
        self._limited_at = time.monotonic()  # before the limit counts: from here, and not from its last call
        self._limit = min(self._limit, seconds or LAST_STRETCH_SECS)
        if seconds <= 0:
            self._is_stopped = True
            if self._computes_since is not None:  # else it ends in a host call, as an agent in Python does
                self._interrupt()

    def check(self, now: float) -> None:
        """Interrupt it, if it has computed (or slept) for too long."""
        since = self._computes_since
        if self._is_stopped:  # in a host call, too: there are some that answer all the same, again and again
            if now - self._limited_at >= self._limit:
                self._interrupt()
        elif since is None:
            return
        elif self._limit <= now - max(since, self._limited_at):
            how_long = f"{self._limit:g} s after Shutdown"
            self._end_by(AgentStopped(f"agent {self._name!r} made no host call for {how_long}"))
            self._interrupt()
        elif now - since >= self._sandbox.timeout_secs:
            limit = f"{self._sandbox.timeout_secs:g} s (sandbox.timeout_secs)"
            self._end_by(GuestFailed(f"it made no host call for {limit}, and was interrupted"))
            self._interrupt()

    def _interrupt(self) -> None:
        engine = self._engine
        if engine is not None:
            engine.increment_epoch()

    def _end_by(self, why: BaseException) -> None:
        with self._lock:
            self._ended_by = self._ended_by or why

    def _run(self, engine: Engine, store: Store, host: SyncHost) -> str | None:
        with Lines(self._name) as lines:
            try:
                store.set_wasi(self._wasi(lines))
                linker = self._linker(engine, host)
                component = self._compiled.load(engine)
                self._computes_since = time.monotonic()
                instance = linker.instantiate(store, component)
                run = instance.get_func(store, "run")
                assert run is not None, "it was looked at when it was loaded"
                result: Any = run(store)
            except WasmtimeError as error:
                raise self._reason(error) from None
            finally:
                self._computes_since = None
        assert isinstance(result, Variant), "its type was looked at, too"
        if result.tag == "err":
            raise GuestFailed(result.payload)
        return result.payload

    def _reason(self, error: WasmtimeError) -> BaseException:
        if self._ended_by is not None:
            return self._ended_by
        if self._is_stopped:
            return AgentStopped(f"agent {self._name!r} was stopped between two host calls")
        return _failure(error)

    def _new_store(self, engine: Engine) -> Store:
        store = Store(engine)
        store.set_epoch_deadline(1)
        store.set_limits(
            memory_size=self._sandbox.memory_mb * 1024 * 1024,
            memories=2 if self._compiled.is_wrapped else 1,  # each may have the whole of it
            instances=MOST_INSTANCES,
            tables=MOST_TABLES,
            table_elements=MOST_TABLE_ELEMENTS,
        )
        return store

    def _wasi(self, lines: Lines) -> WasiConfig:
        wasi = WasiConfig()
        wasi.env = [(name, value.expose()) for name, value in self._sandbox.env.items()]
        for seen_as, preopen in self._sandbox.preopens.items():
            try:
                wasi.preopen_dir(preopen.path, seen_as, preopen.writable)
            except WasmtimeError:  # which says neither what nor why
                where = f"{preopen.path} (sandbox.preopens, as {seen_as})"
                raise GuestFailed(f"the folder {where} cannot be opened") from None
        match self._sandbox.stdout:
            case "log":
                lines.take_over(wasi)
            case "inherit":
                wasi.inherit_stdout()
                wasi.inherit_stderr()
            case "discard":
                pass
        return wasi

    def _linker(self, engine: Engine, host: SyncHost) -> Linker:
        linker = Linker(engine)
        linker.add_wasip2()
        with linker.root() as root:
            with root.add_instance(f"{PACKAGE}/types@{VERSION}"):
                pass
            with root.add_instance(f"{PACKAGE}/tooling@{VERSION}") as tooling:
                Toolings(host).define(tooling, self._guard)
            with root.add_instance(f"{PACKAGE}/host@{VERSION}") as rest:
                define_host(rest, host, self._guard)
        return linker

    def _guard(self, call: Callable[[], Any]) -> Any:
        """Around each host call: the guest does not compute meanwhile, and is unwound if it may not go on."""
        self._computes_since = None
        try:
            return call()
        except BaseException as error:
            self._end_by(error)
            raise WasmtimeError("the host ended the guest") from None
        finally:
            self._computes_since = time.monotonic()


def _failure(error: WasmtimeError) -> GuestFailed:
    if isinstance(error, ExitTrap):
        return GuestFailed(f"it exited with status {error.code}, and did not return from `run`")
    where, _, cause = str(error).strip().partition("\n\nCaused by:\n")
    return GuestFailed(f"{cause.strip()}\n{where}" if cause else where)
