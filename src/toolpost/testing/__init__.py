"""Tests of agents: cases from files, how one runs, what is told of it, and what tests in Python use.

    from toolpost.testing import MockBuilder, call, inbound

What is public is named here. Names are imported when they are first used. The fixtures of the pytest plugin
give objects of these types; see `toolpost/pytest_plugin.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolpost.testing.builder import CallStepBuilder as CallStepBuilder
    from toolpost.testing.builder import MockBuilder as MockBuilder
    from toolpost.testing.builder import StepBuilder as StepBuilder
    from toolpost.testing.fixtures import HostFactory as HostFactory
    from toolpost.testing.fixtures import MockFactory as MockFactory
    from toolpost.testing.host_under_test import HostUnderTest as HostUnderTest
    from toolpost.testing.patterns import call as call
    from toolpost.testing.patterns import inbound as inbound
    from toolpost.testing.trace_view import TraceView as TraceView

_HOMES = {
    "builder": "CallStepBuilder MockBuilder StepBuilder",
    "fixtures": "HostFactory MockFactory",
    "host_under_test": "HostUnderTest",
    "patterns": "call inbound",
    "trace_view": "TraceView",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "CallStepBuilder",
    "HostFactory",
    "HostUnderTest",
    "MockBuilder",
    "MockFactory",
    "StepBuilder",
    "TraceView",
    "call",
    "inbound",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'toolpost.testing' has no attribute {name!r}")
    value = getattr(import_module(f"toolpost.testing.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
