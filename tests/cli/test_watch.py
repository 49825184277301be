"""`watch`: a line for each change, through crashes of the server, until Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.cli.conftest import Inside
from tests.cli.support import (
    BOUND_SECS,
    CATALOG,
    Running,
    assert_none_left,
    catalog,
    entries,
    odd,
    pids,
    read_terminal,
    read_terminal_until,
    received,
    started,
    started_on_terminal,
    until,
    write_config,
)
from tests.servers.own.catalog import URIS
from toolpost.cli import watch
from toolpost.cli.terminal import Talk
from toolpost.errors import Unsupported, UsageError
from toolpost.events import ResourceListUpdated, ResourceUpdated
from toolpost.model import ResourceInfo
from toolpost.trace.events import State

README = "shop://readme.md"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


@pytest.fixture
def config(tmp_path: Path, log: Path) -> Path:
    """The one tooling `shop`."""
    return write_config(tmp_path, {"tooling": {"shop": catalog(log)}})


def subscriptions(log: Path) -> int:
    """How often the server has agreed to a subscription."""
    return sum(each.get("method") == "resources/subscribe" for each in entries(log))


def line(running: Running) -> str:
    """The next line of standard output."""
    assert running.process.stdout is not None
    return running.process.stdout.readline()


def said(running: Running) -> str:
    """The next line of standard error."""
    assert running.process.stderr is not None
    return running.process.stderr.readline()


def test_changes_are_json_lines_through_a_crash_until_ctrl_c(config: Path, log: Path) -> None:
    with started("watch", "shop", README, "--list", "--json", "-c", config) as running:
        until(lambda: received(log, "resources/list"))  # asked for last
        os.kill(pids(log)[0], signal.SIGUSR1)
        changed = json.loads(line(running))
        os.kill(pids(log)[0], signal.SIGUSR2)
        listed = json.loads(line(running))
        os.kill(pids(log)[0], signal.SIGKILL)
        lost, back = said(running), said(running)
        refreshed = [json.loads(line(running)) for _ in range(2)]
        running.signal(signal.SIGINT)
        ended = running.end()

    assert changed["event"] == "resource-updated"
    assert changed["payload"]["content"] == "# The shop\n\nOpen **daily**, 8 €.\n"
    assert listed["event"] == "resource-list-updated"
    assert listed["payload"][0]["uri"] == "shop://new"
    assert lost == "the connection to 'shop' was lost; it is made again\n"
    assert back == "the connection to 'shop' is back\n"
    assert {each["id"] for each in refreshed} == {changed["id"], listed["id"]}
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    assert_none_left(log)


def test_a_reader_that_leaves_ends_the_watch_quietly(config: Path, log: Path) -> None:
    with started("watch", "shop", README, "-c", config) as running:
        until(lambda: subscriptions(log) == 1)
        os.kill(pids(log)[0], signal.SIGUSR1)
        assert README in line(running)
        assert running.process.stdout is not None
        running.process.stdout.close()  # as `head -1` does
        os.kill(pids(log)[0], signal.SIGUSR1)
        status = running.process.wait(BOUND_SECS)
        assert running.process.stderr is not None
        said_last = running.process.stderr.read()

    assert (status, said_last) == (1, "")
    assert_none_left(log)


def test_changes_are_lines_as_wide_as_the_terminal(config: Path, log: Path) -> None:
    shown = ""
    with started_on_terminal("watch", "shop", "-c", config, columns=40, NO_COLOR="1") as (process, screen):
        until(lambda: subscriptions(log) == len(URIS))  # nothing named: everything that there is
        for number, what in ((signal.SIGUSR1, README), (signal.SIGUSR2, "list")):
            os.kill(pids(log)[0], number)
            shown += read_terminal_until(screen, f"{what}  ")
        process.send_signal(signal.SIGINT)
        while chunk := read_terminal(screen):  # to the end of the last line
            shown += chunk.decode()
        status = process.wait(BOUND_SECS)

    assert status == 0
    assert [line[10:] for line in shown.replace("\r\x1b[2K", "\n").splitlines()[1:]] == [
        "shop://readme.md  (text/markd…",
        "list  (6 resources)  +shop://…",
    ]


def test_a_server_that_does_not_come_back_ends_the_watch_with_1(tmp_path: Path, log: Path) -> None:
    server = shutil.copy(CATALOG, tmp_path / "server.py")
    table = catalog() | {"command": sys.executable, "args": [str(server), "--log", str(log)]}
    tunables = {"tooling_connect_backoff_cap_secs": 0}
    config = write_config(tmp_path, {"tooling": {"shop": table}, "tunables": tunables})

    with started("watch", "shop", README, "-c", config) as running:
        until(lambda: subscriptions(log))
        Path(server).unlink()
        os.kill(pids(log)[0], signal.SIGKILL)
        ended = running.end()

    assert (ended.status, ended.out) == (1, "")
    assert "the connection to 'shop' was lost" in ended.said
    assert "error: tooling 'shop': cannot connect, given up after 1 attempts" in ended.said


@pytest.mark.parametrize(
    ("table", "words", "said"),
    [
        (odd("bare"), [], "there is nothing to watch: the server does not tell of changes"),
        (odd("bare"), ["odd://one"], "the server did not declare resources.subscribe"),
        (odd("exit_on_start"), [], "no licence found"),
    ],
)
def test_what_cannot_be_watched_is_status_1(
    table: dict[str, Any], words: list[str], said: str, inside: Inside, tmp_path: Path
) -> None:
    tunables = {"tooling_connect_backoff_cap_secs": 0}
    config = write_config(tmp_path, {"tooling": {"it": table}, "tunables": tunables})

    ended = inside("watch", "it", *words, "-c", config)

    assert (ended.status, ended.out) == (1, "")
    assert said in ended.err


# -- what there is to watch ------------------------------------------------------------------------


def house(capabilities: dict[str, Any] | None, uris: list[str]) -> Any:
    async def describe(_name: str) -> dict[str, Any]:
        return {} if capabilities is None else {"capabilities": capabilities}

    async def list_resources() -> list[ResourceInfo]:
        return [ResourceInfo(uri=uri, name=uri) for uri in uris]

    tooling = SimpleNamespace(list_resources=list_resources)
    return SimpleNamespace(describe=describe, tooling=lambda name: tooling)  # pyright: ignore[reportUnknownLambdaType]: a fake


EVERYTHING = cast("Callable[..., Any]", watch._everything)  # pyright: ignore[reportPrivateUsage]: it decides


async def test_everything_is_what_the_server_tells_of() -> None:
    of_each, of_list = {"resources": {"subscribe": True}}, {"resources": {"listChanged": True}}

    assert await EVERYTHING(house(None, ["a"]), "it") == (["a"], True)
    assert await EVERYTHING(house(of_each, ["a"]), "it") == (["a"], False)
    assert await EVERYTHING(house(of_list, ["a"]), "it") == ([], True)


async def test_nothing_and_too_much_are_told() -> None:
    able = {"resources": {"subscribe": True}}

    with pytest.raises(Unsupported, match="does not tell of changes"):
        await EVERYTHING(house({}, ["a"]), "it")
    with pytest.raises(Unsupported, match="has no resources"):
        await EVERYTHING(house(able, []), "it")
    with pytest.raises(UsageError, match="has 101 resources; name those to watch"):
        await EVERYTHING(house(able, ["a"] * 101), "it")


# -- lines -----------------------------------------------------------------------------------------


def test_an_update_is_a_line_of_what_it_is_now() -> None:
    text = ResourceUpdated(uri="x://a", content="one\ntwo")
    binary = ResourceUpdated(uri="x://a", mime_type="image/png", content="AAAA////AA==", encoding="base64")

    assert watch.update_line(text) == "x://a  (text, 7 characters)  one two"
    assert watch.update_line(binary) == "x://a  (image/png, 7 bytes)"


def test_a_list_is_a_line_of_what_came_and_went() -> None:
    event = ResourceListUpdated([ResourceInfo(uri="b", name="b")])

    assert watch.list_line(event, {"a"}) == "list  (1 resource)  +b -a"
    assert watch.list_line(ResourceListUpdated([]), set()) == "list  (0 resources)"


def test_only_a_connection_that_was_there_can_be_back(capsys: pytest.CaptureFixture[str]) -> None:
    connection = watch.Connection(Talk(), "it")

    for state in ("dialing", "ready", "lost", "dialing", "ready", "closed"):
        connection.told(State(tooling="it", state=state))

    assert connection.has_been_up
    assert capsys.readouterr().err.splitlines() == [
        "the connection to 'it' was lost; it is made again",
        "the connection to 'it' is back",
    ]
