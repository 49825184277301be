"""Names for completion: the config's toolings, and the tools of servers that answered before.

Completing starts no server and loads no configuration: it reads the table's keys, and a small file in the
user's cache folder that holds names and nothing else. Whatever is wrong with either, there is just
nothing to offer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import typer

if TYPE_CHECKING:
    from pathlib import Path

_BOUND = 1000
"""Names that are remembered of one tooling, and toolings of one config."""


def complete_tooling(ctx: typer.Context, incomplete: str) -> list[str]:
    """The toolings of the config that start so."""
    return _starting(incomplete, tooling_names(_config_path(ctx)))


def complete_tool(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tools of the tooling that was named before, as far as they are known, that start so."""
    name = ctx.params.get("name")
    return _starting(incomplete, tool_names(_config_path(ctx), name) if isinstance(name, str) else ())


def _starting(incomplete: str, known: Iterable[str]) -> list[str]:
    return sorted(each for each in known if each.startswith(incomplete) and each.isprintable())


def _config_path(ctx: typer.Context) -> str | None:
    """What `-c` says, after the command or before it."""
    while True:
        config = ctx.params.get("config")
        if isinstance(config, str) or ctx.parent is None:
            return config
        ctx = cast("typer.Context", ctx.parent)


def tooling_names(config: str | None) -> list[str]:
    """The keys of `[tooling.…]` in a file; none where it cannot be read."""
    import tomli

    try:
        with _absolute(config).open("rb") as file:
            return list(_table(tomli.load(file).get("tooling")))
    except (OSError, ValueError, RecursionError):
        return []


def tool_names(config: str | None, tooling: str) -> list[str]:
    """The tools that were remembered; none where there are none, or the file is no good."""
    names = _remembered(_file(config)).get(tooling)
    return list(_strings(names))


def remember(config: str | None, tooling: str, tools: Iterable[str]) -> None:
    """Keep the names of the tools, for the next completion. A cache that cannot be written is not."""
    import json
    import tempfile

    file = _file(config)
    kept = _remembered(file)
    names = sorted(tools)[:_BOUND]
    if kept.get(tooling) == names:
        return
    kept = dict(list(kept.items())[-_BOUND:]) | {tooling: names}
    temporary = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # moved into place: whoever reads meanwhile has the old file or the new one
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as new:
            temporary = new.name
            json.dump(kept, new)
        os.replace(temporary, file)  # noqa: PTH105  # a name, as tempfile gives it
    except (OSError, ValueError):
        if temporary is not None:
            _remove(temporary)


def _remove(path: str) -> None:
    try:
        os.unlink(path)  # noqa: PTH108  # a name, as tempfile gives it
    except OSError:
        pass


def _remembered(file: Path) -> dict[str, Any]:
    import json

    try:
        return _table(json.loads(file.read_bytes()))
    except (OSError, ValueError, RecursionError):
        return {}


def _file(config: str | None) -> Path:
    """One file a config: its name is a digest of the config's path, so it says nothing of it."""
    import hashlib
    from pathlib import Path

    digest = hashlib.sha256(os.fsencode(_absolute(config))).hexdigest()[:24]
    base = os.environ.get("XDG_CACHE_HOME") or ""
    # the specification: a path that is not absolute is to be ignored
    folder = Path(base) if os.path.isabs(base) else Path.home() / ".cache"  # noqa: PTH117
    return folder / "toolpost" / f"tools-{digest}.json"


def _absolute(config: str | None) -> Path:
    from pathlib import Path

    return Path(config or "toolpost.toml").absolute()


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from (each for each in cast("list[Any]", value) if isinstance(each, str))
