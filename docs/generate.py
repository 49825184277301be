"""What the site generates from the code: the tables of config keys and the command line's help.

A hook of mkdocs. A page says `<!-- generated: NAME -->` where NAME is a function in `PARTS`. Nothing that is
generated is kept in the repository, so nothing of it can be out of date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import typer.main

from toolpost.cli.app import app
from toolpost.config.describe import expected
from toolpost.config.hints import Marks, bare, is_struct, item_hint
from toolpost.config.model import AgentAssertions, AgentTable, CaseSettings, Preopen, Sandbox, Tunables
from toolpost.tooling.registry import find_kind, kind_names
from toolpost.wasm.wit import WIT

_MARK = re.compile(r"<!-- generated: (\w+) -->")
_TOP_LEVEL = re.compile(r"(?:^///.*\n)+(?=interface |world )", re.MULTILINE)
"""Where an interface or a world begins, in WIT."""
_WIDTH = 90
"""Columns of the help: what fits beside the navigation."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page.

    Raises:
        KeyError: The page asks for a part that is not there.
    """
    return _MARK.sub(lambda match: PARTS[match[1]](), markdown)


# -- config ----------------------------------------------------------------------------------------


def config_keys() -> str:
    """Every key of every table."""
    parts = ["## `[tooling.<name>]`\n", "| key | value | default | |", "|---|---|---|---|"]
    kinds = ", ".join(f"`{name}`" for name in kind_names())
    parts.append(
        f"| `kind` | a string | required | Its implementation: {kinds}, or one that you registered. |"
    )
    for name in kind_names():
        kind = find_kind(name)
        if kind is not None and kind.params is not None:
            parts += [f'\n### With `kind = "{name}"`\n', *_table(kind.params), *_inner_tables(kind.params)]
    parts += ["\n## `[agents.<name>]`\n", "`script` or `entry` is required.\n", *_table(AgentTable)]
    parts += ["\n### `sandbox`\n", "Of a guest, a `.wasm` script.\n", *_table(Sandbox)]
    parts += ["\nEach of `preopens`:\n", *_table(Preopen)]
    parts += ["\n## `[tunables]`\n", *_table(Tunables)]
    return "\n".join(parts)


def test_keys() -> str:
    """Every key of the table `[test]`."""
    return "\n".join(_table(CaseSettings))


def assertions_keys() -> str:
    """Every key of a table `[assertions.<agent>]`."""
    return "\n".join(_table(AgentAssertions))


def _inner_tables(struct: type[msgspec.Struct]) -> Iterator[str]:
    """The tables that stand in lists: each step of a script, each tool."""
    told: set[type] = set()
    for field in msgspec.structs.fields(struct):
        inner = item_hint(bare(field.type, {})[0])
        if is_struct(inner):
            yield f"\nEach of `{field.encode_name}`:\n"
            yield from _table(inner) if inner not in told else ("As above.",)
            told.add(inner)


def _table(struct: type[msgspec.Struct]) -> Iterator[str]:
    marked = any(_marks(field).get("transport") for field in msgspec.structs.fields(struct))
    yield f"| key |{' transport |' if marked else ''} value | default | |"
    yield f"|---|{'---|' if marked else ''}---|---|---|"
    for field in msgspec.structs.fields(struct):
        marks = _marks(field)
        transport = f" {marks.get('transport') or 'both'} |" if marked else ""
        hint, _ = bare(field.type, {})
        about = _escaped(_description(field)) + (" `${VAR}` is replaced." if marks.get("expand") else "")
        value = _escaped(expected(hint))
        yield f"| `{field.encode_name}` |{transport} {value} | {_default(field)} | {about} |"


def _marks(field: msgspec.structs.FieldInfo) -> Marks:
    return bare(field.type, {})[1]


def _description(field: msgspec.structs.FieldInfo) -> str:
    metas = getattr(field.type, "__metadata__", ())
    return " ".join(meta.description for meta in metas if meta.description)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if _marks(field).get("required") or field.required:
        return "required"
    if field.default_factory is not msgspec.NODEFAULT or field.default in (None, [], {}):
        return ""
    value: Any = field.default
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, (int, float)) else f'`"{value}"`'


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


# -- command line ----------------------------------------------------------------------------------


def command_line() -> str:
    """The help of each command, as `--help` prints it (without its frames)."""
    app.rich_markup_mode = None
    main: Any = typer.main.get_command(app)
    parts = [_help(main, "toolpost")]
    parts += [f"## `{name}`\n\n{_help(command, name)}" for name, command in _commands(main, "toolpost")]
    return "\n\n".join(parts)


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in sorted(group.commands.items()):
        if not command.hidden:
            yield f"{path} {name}", command
            if hasattr(command, "commands"):
                yield from _commands(command, f"{path} {name}")


def _help(command: Any, name: str) -> str:
    context = command.context_class(
        command,
        info_name=name,
        help_option_names=["-h", "--help"],
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
    )
    return f"```text\n{command.get_help(context).strip()}\n```"


# -- guests ----------------------------------------------------------------------------------------


def wit() -> str:
    """Each interface of the WIT file, under the words that introduce it."""
    text = WIT.read_text(encoding="utf-8")
    starts = [0, *(match.start() for match in _TOP_LEVEL.finditer(text))]
    parts = [text[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
    return "\n\n".join(map(_wit_part, parts))


def _wit_part(text: str) -> str:
    words = [line.removeprefix("///").strip() for line in text.splitlines() if line.startswith("///")]
    code = "\n".join(line for line in text.splitlines() if not line.startswith("///")).strip()
    heading = re.match(r"(interface|world) [\w-]+", code)
    title = f"## `{heading[0]}`\n\n" if heading else ""
    return f"{title}{chr(10).join(words)}\n\n```wit\n{code}\n```"


PARTS: dict[str, Callable[[], str]] = {
    "config_keys": config_keys,
    "test_keys": test_keys,
    "assertions_keys": assertions_keys,
    "command_line": command_line,
    "wit": wit,
}
