"""Kind `mcp` as the table of kinds has it. Imports no SDK until a backend is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolpost.mcp.params import McpParams, check
from toolpost.tooling.registry import Kind

if TYPE_CHECKING:
    from toolpost.tooling.port import Backend, Site


def _backend(params: McpParams, site: Site) -> Backend:
    from toolpost.mcp.backend import McpBackend  # brings the SDK with it

    return McpBackend(params, site)


KIND = Kind(name="mcp", factory=_backend, params=McpParams, check=check)
