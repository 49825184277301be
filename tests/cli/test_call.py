"""`call`: typed arguments, what is told before the call, progress, saving, and servers of no config."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from tests.cli.conftest import Inside
from tests.cli.support import (
    BOUND_SECS,
    CATALOG,
    TOOLPOST,
    at_terminal,
    catalog,
    environment,
    odd,
    received,
    write_config,
)
from tests.servers.own.catalog import BIG
from toolpost.cli import waiting
from toolpost.cli.direct import config_of
from toolpost.cli.options import Direct
from toolpost.cli.terminal import Talk
from toolpost.errors import UsageError
from toolpost.tooling.port import Progress

STDIO = shlex.join([sys.executable, str(CATALOG)])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


@pytest.fixture
def config(tmp_path: Path, log: Path) -> Path:
    """The one tooling `shop`."""
    return write_config(tmp_path, {"tooling": {"shop": catalog(log)}})


# -- arguments -------------------------------------------------------------------------------------


def test_arguments_are_typed_by_the_schema_that_the_server_lists(inside: Inside, config: Path) -> None:
    words = ["title=7", "guests=7", "tags=a", "tags=b", "where.city=Turin", "quiet:=false"]

    ended = inside("call", "shop", "book", *words, "-c", config)

    assert ended.err == ""
    assert json.loads(ended.out) == {
        "title": "7",
        "guests": 7,
        "tags": ["a", "b"],
        "where": {"city": "Turin"},
        "quiet": False,
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["add", "a=x"],
            """tool 'add' was not called:
  b is missing (number: Second number)
  a: expected number, not "x" (First number)
""",
        ),
        (["refer", '{"at": {"y": 1.5}}'], "tool 'refer' was not called: at.y: expected integer, not 1.5\n"),
    ],
)
def test_what_does_not_fit_is_status_2_and_nothing_is_called(
    words: list[str], told: str, inside: Inside, config: Path, log: Path
) -> None:
    ended = inside("call", "shop", *words, "-c", config)

    assert (ended.status, ended.out, ended.err) == (2, "", f"error: tooling 'shop': {told}")
    assert not received(log, "tools/call")


def test_a_schema_that_cannot_be_used_is_a_note_and_the_call_goes_on(inside: Inside, config: Path) -> None:
    ended = inside("call", "shop", "strange", "a=7", "-c", config)

    assert (ended.status, ended.out) == (0, '{"a": 7}\n')
    assert ended.err.startswith(
        "note: the arguments are sent unchecked: the schema of 'strange': it refers to"
    )


def test_a_server_that_cannot_list_its_tools_can_be_called_all_the_same(
    inside: Inside, tmp_path: Path
) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd("bad_page")}})

    ended = inside("call", "it", "echo", "text=hi", "-c", config)

    assert (ended.status, ended.out) == (0, "hi\n")
    assert "note: the arguments are sent unchecked: tooling 'it': list_tools" in ended.err


def test_of_many_tools_the_nearest_are_told(inside: Inside, config: Path) -> None:
    ended = inside("call", "shop", "addd", "-c", config)

    assert ended.status == 0  # this server answers to any name
    assert ended.err == ""

    pages = write_config(config.parent, {"tooling": {"it": odd("pages")}})
    said = inside("call", "it", "tool_7", "-c", pages)
    assert said.status == 1
    assert "nearest first: tool-7, " in said.err
    assert "… (50; `toolpost tools` lists them)" in said.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["call"], "NAME is missing"),
        (["call", "shop"], "TOOL is missing"),
        (["call", "shop", "add", "-o", "no/such/folder"], "there is no folder 'no/such'"),
        (["tools"], "NAME is missing"),
        (["tools", "shop", "--stdio", "x"], "leave -c/--config out"),
        (["read", "shop"], "URI is missing"),
        (["read", "shop", "a", "b"], "b"),
        (["read", "shop", "a", "-o", "x", "--json"], "two ways out"),
    ],
)
def test_wrong_words_are_status_2_and_start_nothing(
    words: list[str], told: str, inside: Inside, config: Path, log: Path
) -> None:
    ended = inside("-c", config, *words)

    assert ended.status == 2
    assert told in ended.err
    assert not log.exists()


# -- results ---------------------------------------------------------------------------------------


def test_pictures_sound_and_embedded_resources_are_saved(
    inside: Inside, config: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"

    ended = inside("call", "shop", "pictures", "-o", f"{folder}/", "-c", config)

    assert (ended.status, ended.out) == (0, "two pictures and a bill\n")
    assert sorted(file.name for file in folder.iterdir()) == ["7.txt", "pictures.png", "pictures.wav"]
    assert (folder / "7.txt").read_text() == "7 €"
    assert ended.err == "".join(
        f"saved {folder / name}\n" for name in ("pictures.png", "pictures.wav", "7.txt")
    )


def test_nothing_to_save_is_told(inside: Inside, config: Path, tmp_path: Path) -> None:
    ended = inside("call", "shop", "bare", "-o", tmp_path / "out", "-c", config)

    assert (ended.status, ended.out) == (0, "{}\n")
    assert ended.err.startswith("nothing to save")


def test_raw_and_json_print_the_whole_result(inside: Inside, config: Path) -> None:
    raw = inside("call", "shop", "bare", "--raw", "-c", config)

    assert raw == inside("call", "shop", "bare", "--json", "-c", config)
    assert raw.document["content"] == [{"type": "text", "text": "{}"}]


def test_five_megabytes_pass_whole(inside: Inside, config: Path) -> None:
    called = inside("call", "shop", "big", "-c", config)
    read = inside("read", "shop", "shop://big", "-c", config)

    assert called.out == "x" * BIG + "\n"
    assert read.out == "x" * BIG


# -- progress --------------------------------------------------------------------------------------


def test_progress_is_a_bar_on_a_terminal(config: Path) -> None:
    status, screen = at_terminal("call", "shop", "steps", "-c", config, columns=60)
    frames = screen.split("\r\x1b[2K")

    assert status == 0
    assert frames[-1] == "done\n"
    assert frames[1].endswith(" steps 1  step 1")  # a total is not known yet
    assert "steps ██████████░░░░░░░░░░  50%  2/4  step 2" in frames
    assert "steps ████████████████████ 100%  4/4  step 4" in frames


def test_progress_shows_nowhere_else(inside: Inside, config: Path) -> None:
    assert inside("call", "shop", "steps", "-c", config).err == ""


@pytest.mark.parametrize(
    ("told", "plain", "line"),
    [
        (None, False, "⠙ draw"),
        (None, True, "/ draw"),
        (Progress(tool="draw", progress=3), True, "/ draw 3"),
        (Progress(tool="draw", progress=3, total=0, message="a\nb"), True, "/ draw 3  a b"),
        (Progress(tool="draw", progress=1, total=4), True, "draw #####...............  25%  1/4"),
        (Progress(tool="draw", progress=9, total=4), True, "draw #################### 100%  9/4"),
        (Progress(tool="draw", progress=-1, total=4), True, "draw ....................   0%  -1/4"),
    ],
)
def test_a_line_of_progress(told: Progress | None, plain: bool, line: str) -> None:
    assert waiting.line("draw", told, 1, plain=plain) == line


async def test_a_spinner_turns_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    turned = anyio.Event()

    def progress(text: str) -> None:
        shown.append(text)
        if len(shown) == 3:
            turned.set()

    monkeypatch.setattr(waiting, "PATIENCE_SECS", 0)
    monkeypatch.setattr(waiting, "FRAME_SECS", 0)
    talk: Any = SimpleNamespace(moves=True, progress=progress)
    async with waiting.waiting(talk, "draw"):
        await turned.wait()

    assert shown[-1] == ""
    assert {text[1:] for text in shown[:-1]} == {" draw"}
    assert len(set(shown[:3])) == 3


# -- servers of no config --------------------------------------------------------------------------


def test_a_server_is_used_without_a_config(inside: Inside, cache: Path) -> None:
    called = inside("call", "--stdio", STDIO, "add", "a=1", "b=2")
    listed = inside("tools", "--stdio", STDIO, "--json")

    assert (called.status, called.out) == (0, '{"a": 1, "b": 2}\n')
    assert "add" in {each["name"] for each in listed.document}
    assert not cache.exists()


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (["read", "shop://two.txt"], "one\ntwo"),
        (["resources"], "shop://readme.md"),
        (["prompts"], "greet who [how]"),
    ],
)
def test_every_question_can_be_put_to_it(words: list[str], out: str, inside: Inside) -> None:
    ended = inside(*words, "--stdio", STDIO)

    assert (ended.status, ended.err) == (0, "")
    assert out in ended.out


def test_a_server_at_a_url_that_is_not_there_is_named_and_the_token_is_kept(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "very-secret-indeed")

    ended = inside("tools", "--http", "http://127.0.0.1:1/mcp", "--token-env", "SHOP_TOKEN", "-vv")

    assert ended.status == 1
    assert "the server cannot be reached at http://127.0.0.1:1/mcp: " in ended.err
    assert "very-secret" not in ended.err


def test_a_server_gets_the_variables_that_are_passed_on() -> None:
    direct = Direct(stdio="server --key '${HOME}' \"a b\"", pass_env=["SHOP_TOKEN"])
    environ = {"SHOP_TOKEN": "x", "HOME": "/home/me", "TOOLPOST__TOOLING__WEB__URL": "no tooling of this"}

    config = config_of(direct, environ | {"TOOLPOST__TUNABLES__INBOX_BOUND": "7"})

    params: Any = config.tooling["stdio"].params
    assert params.command == "server"
    assert params.args == ["--key", "${HOME}", "a b"]  # a shell fills in what is meant to be
    assert params.inherit_env == ["SHOP_TOKEN"]
    assert config.tunables.inbox_bound == 7


@pytest.mark.parametrize(
    ("direct", "told"),
    [
        (Direct(stdio="a", http="b"), "--stdio and --http"),
        (Direct(stdio="a", token_env="A"), "--token-env belongs to --http"),
        (Direct(http="http://a", pass_env=["A"]), "--pass-env belongs to --stdio"),
        (Direct(stdio=""), "--stdio is empty"),
        (Direct(stdio="a 'b"), "is no command line: No closing quotation"),
        (Direct(stdio="a", pass_env=["SHOP_TOKEN"]), "--pass-env names 'SHOP_TOKEN'"),
        (Direct(http="http://a", token_env="sk-123"), "it takes a variable's name, not its value"),
    ],
)
def test_options_that_name_no_server_are_told(direct: Direct, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        config_of(direct, {})


# -- pipes -----------------------------------------------------------------------------------------


def test_a_reader_that_has_enough_ends_the_command_quietly(config: Path) -> None:
    command = f"{shlex.quote(TOOLPOST)} read shop shop://big -c {shlex.quote(str(config))} | head -c 5"

    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        timeout=BOUND_SECS,
        env=environment(),
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (1, b"xxxxx", b"")


def test_talk_moves_on_terminals_only() -> None:
    assert not Talk().moves
