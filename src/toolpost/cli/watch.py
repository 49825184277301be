"""`toolpost watch NAME [URI …]`: changes of resources as they come, until Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolpost.cli.options import (
    ConfigOption,
    Direct,
    HttpOption,
    LevelOption,
    PassEnvOption,
    StdioOption,
    TokenEnvOption,
    ToolingArgument,
    VerboseOption,
)
from toolpost.cli.session import DONE, FAILED, Session, run_to_end
from toolpost.cli.terminal import Talk, one_line, width, write_json, write_line

if TYPE_CHECKING:
    from toolpost.cli.house import House
    from toolpost.events import Envelope, ResourceListUpdated, ResourceUpdated
    from toolpost.host.handle import Tooling
    from toolpost.trace.events import State

EXAMPLES = """
Examples:

toolpost watch memory memory://knowledge-graph

toolpost watch memory --json | jq -r .payload.content

toolpost watch everything --list
"""

BOUND = 100
"""So many resources are watched where none is named."""
_PREVIEW = 200
"""Characters of a line on a pipe."""


def watch(
    ctx: typer.Context,
    name: ToolingArgument = None,
    uris: Annotated[
        list[str] | None,
        typer.Argument(metavar="URI", help="Resources to watch. Default: all.", show_default=False),
    ] = None,
    with_list: Annotated[
        bool, typer.Option("--list", help="Watch the list of resources: which come and go.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, for programs: one object a line.")
    ] = False,
    stdio: StdioOption = None,
    http: HttpOption = None,
    token_env: TokenEnvOption = None,
    pass_env: PassEnvOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Watch resources: a line for each change, until Ctrl-C.

    It stays when the server crashes: the server is started again, and what changed meanwhile is told.
    Exit status 1 only when the server can be watched no longer.
    """
    direct = Direct(stdio=stdio, http=http, token_env=token_env, pass_env=pass_env)
    Session.of(ctx, config, verbose, log_level, direct).finish(
        lambda session: _watch(session, [name, *(uris or [])], with_list=with_list, as_json=as_json)
    )


def _watch(session: Session, words: Sequence[str | None], *, with_list: bool, as_json: bool) -> int:
    name, uris = session.target(words)
    session.check_tooling(name)
    watching = _Watching(session, name, as_json=as_json)
    try:
        return run_to_end(lambda: watching.run(list(dict.fromkeys(uris)), with_list=with_list))
    except KeyboardInterrupt:
        if watching.has_begun:  # how a watch is meant to end
            return DONE
        raise


@dataclass
class Connection:
    """Tells people when the connection goes and when it is back."""

    talk: Talk
    tooling: str
    is_expected: bool = False
    """A connection is being made, or was; some kinds have none."""
    has_been_up: bool = False
    is_lost: bool = False

    def told(self, event: State) -> None:
        """The connection has changed its state."""
        self.is_expected = True
        match event.state:
            case "lost":
                self.is_lost = True
                self.talk.say(f"the connection to {self.tooling!r} was lost; it is made again")
            case "ready":
                if self.is_lost:
                    self.talk.say(f"the connection to {self.tooling!r} is back")
                self.is_lost, self.has_been_up = False, True
            case _:
                pass


@dataclass
class _Watching:
    """One watch: which sources are open, and what was known of the list."""

    session: Session
    name: str
    as_json: bool
    opened: set[str] = field(default_factory=set[str])
    known: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.connection = Connection(self.session.talk, self.name)

    @property
    def has_begun(self) -> bool:
        """Whether something is watched, and not only asked for."""
        return bool(self.opened) and (self.connection.has_been_up or not self.connection.is_expected)

    async def run(self, uris: list[str], *, with_list: bool) -> int:
        from toolpost.cli.house import open_house

        async with open_house(self.session, is_patient=True, on_state=self.connection.told) as house:
            tooling = house.tooling(self.name)
            if not uris and not with_list:
                uris, with_list = await _everything(house, self.name)
            for uri in uris:
                self.opened.add(await tooling.subscribe_resource(uri))
            if with_list:
                self.opened.add(await tooling.subscribe_resource_list())
                self.known = {each.uri for each in await tooling.list_resources()}
            while self.opened:
                self._tell(await house.recv(), tooling)
        return FAILED

    def _tell(self, envelope: Envelope, tooling: Tooling) -> None:
        from toolpost.events import Error, ResourceListUpdated, ResourceUpdated, to_json_envelope

        event = envelope.event
        if not tooling.is_open(envelope.id):
            self.opened.discard(envelope.id)
        if self.as_json:
            write_json(to_json_envelope(envelope), indent=None)
        match event:
            case Error(text=text):
                self.session.fail(text)
            case _ if self.as_json:
                pass
            case ResourceUpdated():
                _write(update_line(event))
            case ResourceListUpdated():
                _write(list_line(event, self.known))
                self.known = {each.uri for each in event.resources}
            case _:
                pass


async def _everything(house: House, name: str) -> tuple[list[str], bool]:
    """What there is to watch, of what the server says that it tells changes of.

    Raises:
        Unsupported: Nothing.
        UsageError: Too much.
    """
    from toolpost.errors import Unsupported, UsageError

    described: dict[str, Any] = await house.describe(name)
    tooling = house.tooling(name)
    uris = [each.uri for each in await tooling.list_resources()]
    if described:
        told: dict[str, Any] = described["capabilities"].get("resources") or {}
        of_each, of_list = bool(told.get("subscribe")), bool(told.get("listChanged"))
    else:
        of_each = of_list = True  # a kind that has no server to declare it
    if not of_list and not (of_each and uris):
        why = "has no resources" if of_each else "does not tell of changes"
        raise Unsupported(f"tooling {name!r}: there is nothing to watch: the server {why}")
    if of_each and len(uris) > BOUND:
        raise UsageError(f"tooling {name!r} has {len(uris)} resources; name those to watch, or give --list")
    return uris if of_each else [], of_list


# -- lines -----------------------------------------------------------------------------------------


def update_line(event: ResourceUpdated) -> str:
    """A changed resource: its URI, how much it is now, and how it begins."""
    if event.encoding == "base64":
        size = len(event.content) * 3 // 4 - event.content[-2:].count("=")
        what, begins = f"{event.mime_type or 'binary'}, {size} bytes", ""
    else:
        what, begins = f"{event.mime_type or 'text'}, {len(event.content)} characters", event.content
    return f"{event.uri}  ({what})  {' '.join(begins[:_PREVIEW].split())}".rstrip()


def list_line(event: ResourceListUpdated, known: set[str]) -> str:
    """A changed list: how many there are, which came and which went."""
    now = {each.uri for each in event.resources}
    changes = [f"+{uri}" for uri in sorted(now - known)] + [f"-{uri}" for uri in sorted(known - now)]
    count = f"{len(now)} resource{'' if len(now) == 1 else 's'}"
    return f"list  ({count})  {' '.join(changes)}".rstrip()


def _write(text: str) -> None:
    """One line, as wide as the terminal, with the time in front."""
    text = one_line(text)
    columns = width()
    room = _PREVIEW if columns is None else max(columns - len("00:00:00  "), 10)
    write_line(f"{time.strftime('%H:%M:%S')}  {text if len(text) <= room else f'{text[: room - 1]}…'}")
