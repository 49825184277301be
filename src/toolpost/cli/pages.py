"""Lists that the tooling interface has no call for, such as prompts: raw requests, all pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from toolpost.errors import ServerError

if TYPE_CHECKING:
    from toolpost.host.handle import Tooling
    from toolpost.model import JsonObject

MAX_PAGES = 1000
_METHOD_NOT_FOUND = -32601


async def list_all(tooling: Tooling, method: str, key: str) -> list[JsonObject]:
    """The items of every page; none from a server that knows no such request.

    Raises:
        ServerError: The server failed, or goes on for ever.
    """
    found: list[JsonObject] = []
    cursor: Any = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        try:
            page = await tooling.request(method, None if cursor is None else {"cursor": cursor})
        except ServerError as error:
            if error.code == _METHOD_NOT_FOUND and cursor is None:
                return []
            raise
        found += objects(page.get(key))
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or cursor in seen:  # one that comes again would lead in circles
            return found
        seen.add(cursor)
    raise ServerError(f"tooling {tooling.name()!r}: {method}: more than {MAX_PAGES} pages", code=-32603)


def objects(value: Any) -> list[JsonObject]:
    """The objects in what should be a list of them."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("JsonObject", each) for each in items if isinstance(each, dict)]


def fields(item: JsonObject, **names: str) -> JsonObject:
    """Some fields of an item, by their names here; absent ones are left out."""
    return {ours: item[theirs] for ours, theirs in names.items() if item.get(theirs) is not None}
