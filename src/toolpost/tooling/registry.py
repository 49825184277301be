"""Which kinds there are: a table from the kind's name to the factory of its backends.

Built-in kinds, a program's own (`register_tooling`) and those of installed packages (entry-point group
`toolpost.toolings`) stand in one table and are equals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec

from toolpost.errors import UsageError
from toolpost.tooling.port import Backend, Site

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

ENTRY_POINT_GROUP = "toolpost.toolings"

Factory: TypeAlias = Callable[[Any, Site], Backend]
"""`factory(params, site)`: `params` is the table `[tooling.<name>]` without `kind`, as an instance of the
kind's params type, or as a plain dict where it declares none."""

Check: TypeAlias = Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]]
"""Finds what single keys cannot show: gives `(key, problem)` pairs for a table of raw values.

The values are as they are written (no `${VAR}` replaced, no `Secret` made), wrong ones among them. A key
may lead inside, as `steps[0].name`; an empty one is the table itself."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of tooling."""

    name: str
    factory: Factory
    params: type[msgspec.Struct] | None = None
    """Describes the kind's keys; unknown keys and wrong types are then config errors."""
    check: Check | None = None
    is_simulated: bool = False
    """It waits for nothing but the event loop's clock, so time may be virtual where it is used."""


_BUILT_IN = {"mcp": "toolpost.mcp.kind:KIND", "mock": "toolpost.mock.kind:KIND"}
"""Named as an entry point names them, so that this room needs no import of the rooms above it."""

_registered: dict[str, Kind] = {}


def register_tooling(
    kind: str,
    factory: Factory,
    *,
    params: type[msgspec.Struct] | None = None,
    check: Check | None = None,
    is_simulated: bool = False,
) -> None:
    """Make `kind = "<kind>"` mean your own backend, in this process.

    Args:
        kind: The name that configurations use.
        factory: Called as `factory(params, site)` when a host opens; it must not connect yet.
        params: The keys of the table as a msgspec Struct; None accepts any keys, as a dict.
        check: Finds problems between keys; gives `(key, problem)` pairs.
        is_simulated: Your backend waits for nothing but the event loop's clock: no file, no socket, no
            thread. Then runs with it can be simulated. In one, what a sync agent asks for may be done by that
            agent's thread, while all others stand still.

    Raises:
        UsageError: The kind is registered already.
    """
    if kind in _BUILT_IN or kind in _registered or any(point.name == kind for point in _entry_points()):
        raise UsageError(f"kind {kind!r} is registered already; choose another name for yours")
    _registered[kind] = Kind(
        name=kind, factory=factory, params=params, check=check, is_simulated=is_simulated
    )


def find_kind(name: str) -> Kind | None:
    """The kind of that name: built in, registered, or of an installed package; None if there is none.

    Raises:
        UsageError: Several installed packages bring a kind of that name.
    """
    if name in _registered:
        return _registered[name]
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return cast("Kind", getattr(import_module(module), attribute))
    points = [point for point in _entry_points() if point.name == name]
    if not points:
        return None
    if len(points) > 1:
        packages = ", ".join(sorted(point.dist.name if point.dist else point.value for point in points))
        raise UsageError(f"kind {name!r} is brought by several packages ({packages}); uninstall all but one")
    loaded: Any = points[0].load()
    return loaded if isinstance(loaded, Kind) else Kind(name=name, factory=loaded)


def kind_names() -> list[str]:
    """Every known kind, sorted; asks the installed packages too."""
    return sorted({*_BUILT_IN, *_registered, *(point.name for point in _entry_points())})


def _entry_points() -> EntryPoints:
    from importlib.metadata import entry_points  # costs tens of milliseconds, and few need it

    return entry_points(group=ENTRY_POINT_GROUP)
