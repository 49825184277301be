"""Kind `mock` as the table of kinds has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolpost.mock.params import MockParams, check
from toolpost.tooling.registry import Kind

if TYPE_CHECKING:
    from toolpost.tooling.port import Backend, Site


def _backend(params: MockParams, site: Site) -> Backend:
    from toolpost.mock.backend import MockBackend  # a config is checked without it

    return MockBackend(params, site)


KIND = Kind(name="mock", factory=_backend, params=MockParams, check=check, is_simulated=True)
