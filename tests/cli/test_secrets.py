"""No secret of a config leaves toolpost: not at debug level, not from a server that repeats it everywhere."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import odd, toolpost, write_config

SECRET = 'p4ss/"wörd"+7f3a9c51d2'
FORMS = [SECRET, "7f3a9c51d2", base64.b64encode(SECRET.encode()).decode()]

AGENT = """
import logging, warnings

def run(host):
    tooling = host.tooling.get("it")
    leak = tooling.call_tool_blocking("leak").value
    host.log(leak)
    logging.getLogger("foreign").error("%s", [leak])
    warnings.warn(leak)
    for tool in ("refuse", "malformed"):
        tooling.call_tool(tool)
        host.log(str(host.recv()))
    tooling.subscribe_resource("odd://one")
    tooling.call_tool_blocking(
        "notify", {"method": "notifications/resources/updated", "params": {"uri": "odd://one"}}
    )
    host.log(str(host.recv()))
    raise RuntimeError(leak)
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return configured(tmp_path)


def configured(folder: Path, *, n: float = 0, **tunables: Any) -> Path:
    tables = {
        "tooling": {"it": odd("leaky", n=n, env={"LEAK": SECRET})},
        "agents": {"one": {"script": "one.py"}},
        "tunables": tunables,
    }
    return write_config(folder, tables, one=AGENT)


def assert_silent(*texts: str) -> None:
    for text in texts:
        assert [form for form in FORMS if form in text] == []


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["check"], 0),
        (["check", "--json"], 0),
        (["check", "--connect", "--json"], 0),
        (["tools", "it"], 0),
        (["tools", "it", "--json"], 0),
        (["call", "it", "refuse"], 1),
        (["call", "it", "malformed"], 1),
        (["call", "it", "die"], 1),
        (["call", "it", SECRET], 1),
        (["run"], 1),
        (["run", "--json"], 1),
    ],
)
def test_no_command_gives_it_away(words: list[str], status: int, config: Path) -> None:
    ended = toolpost("-vv", *words, "-c", config)

    assert ended.status == status
    assert_silent(ended.out, ended.err)


def test_the_error_of_a_refused_handshake_does_not_give_it_away(tmp_path: Path) -> None:
    config = configured(tmp_path, n=1)

    ended = toolpost("-vv", "tools", "it", "-c", config)

    assert ended.status == 1
    assert "***" in ended.said
    assert_silent(ended.out, ended.err)


def test_the_error_of_a_broken_config_does_not_give_it_away(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd(env={"LEAK": SECRET}, colour=SECRET)}})

    ended = toolpost("-vv", "check", "-c", config)

    assert ended.status == 2
    assert_silent(ended.out, ended.err)


def test_the_result_of_a_call_is_verbatim(config: Path) -> None:
    ended = toolpost("call", "it", "leak", "-c", config)

    assert ended.out == f"the secret is {SECRET}\n"
    assert_silent(ended.err)
