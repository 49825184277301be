"""A list of the server's, page by page. Brings the SDK's error with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND

from toolpost.mcp.clock import Limit
from toolpost.mcp.jsonrpc import NoAnswer
from toolpost.model import ResourceInfo, Tool
from toolpost.secret import get_logger

MAX_PAGES = 1000
MAX_ITEMS = 100_000

_log = get_logger("toolpost.mcp")

T = TypeVar("T", Tool, ResourceInfo)
Page: TypeAlias = tuple[Sequence[T], str | None]
"""The items of one page, and the cursor of the next."""


async def every_item(what: str, fetch: Callable[[str | None], Awaitable[Page[T]]], limit: float) -> list[T]:
    """The items of every page, in order.

    A page has the limit of a request, and all together that of one request that reports progress. A cursor
    that comes again ends the walk: the server goes round in a circle, and what came twice is given once.

    Args:
        what: The list, for the log.
        fetch: Gives the page at a cursor.
        limit: Seconds.

    Raises:
        MCPError: A page is not to be had, or they do not end. Half a list would look like a whole one.
        TimeoutError: The limit has passed.
    """
    items: list[T] = []
    cursor: str | None = None
    seen: set[str] = set()
    with Limit(limit) as clock:
        for _ in range(MAX_PAGES):
            try:
                more, following = await fetch(cursor)
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND and cursor is None:
                    return []  # declared, and not there
                raise
            items += more
            if len(items) > MAX_ITEMS:
                raise NoAnswer(f"listed more than {MAX_ITEMS} items")
            if following is None:
                return items
            if following in seen:
                _log.warning("%s: a cursor came twice; the walk ends there", what)
                return _once_each(items)
            seen.add(following)
            cursor = following
            clock.restart()
    raise NoAnswer(f"listed more than {MAX_PAGES} pages")


def _once_each(items: Sequence[T]) -> list[T]:
    once: dict[str, T] = {}
    for item in items:
        once.setdefault(item.name if isinstance(item, Tool) else item.uri, item)
    return list(once.values())
