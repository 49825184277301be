"""`resources`, `read`, `prompts`: lists, contents, and where which content may go."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Inside
from tests.cli.support import at_terminal, catalog, odd, toolpost, write_config
from tests.servers.own.catalog import PIXEL, URIS
from toolpost.cli import highlight
from toolpost.cli.pages import MAX_PAGES, list_all
from toolpost.cli.prompts import row
from toolpost.errors import ServerError

BINARY = base64.b64decode(PIXEL)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The toolings `shop`, and `bare`, which has nothing."""
    return write_config(tmp_path, {"tooling": {"shop": catalog(), "bare": odd("bare")}})


# -- lists -----------------------------------------------------------------------------------------


def test_resources_are_listed(inside: Inside, config: Path) -> None:
    listed = inside("resources", "shop", "-c", config)
    documents = inside("resources", "shop", "--json", "-c", config).document

    assert [line.split() for line in listed.out.splitlines()] == [[uri, uri] for uri in URIS]
    assert documents == [{"uri": uri, "name": uri} for uri in URIS]


def test_all_pages_of_templates_and_prompts_are_listed(inside: Inside, config: Path) -> None:
    templates = inside("resources", "shop", "--templates", "-c", config)
    prompts = inside("prompts", "shop", "-c", config)

    assert templates.out.splitlines() == [
        "shop://shelf/{number}  text/plain  shelf",
        "shop://bill/{id}                   A bill",
    ]
    assert prompts.out.splitlines() == ["greet who [how]  Greets", "close            Closing time"]


def test_templates_and_prompts_have_json(inside: Inside, config: Path) -> None:
    templates = inside("resources", "shop", "--templates", "--json", "-c", config).document
    prompts = inside("prompts", "shop", "--json", "-c", config).document

    assert templates[0] == {
        "uri_template": "shop://shelf/{number}",
        "name": "shelf",
        "mime_type": "text/plain",
    }
    assert prompts[1] == {"name": "close", "title": "Closing time"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["resources", "bare"], "tooling 'bare' has no resources\n"),
        (["resources", "bare", "--templates"], "tooling 'bare' has no resource templates\n"),
        (["prompts", "bare"], "tooling 'bare' has no prompts\n"),
    ],
)
def test_a_server_that_has_nothing_says_so(words: list[str], said: str, inside: Inside, config: Path) -> None:
    ended = inside(*words, "-c", config)

    assert (ended.status, ended.out, ended.err) == (0, "", said)


class Paged:
    """The raw requests of a handle."""

    def __init__(self, page: Callable[[Any], Any]) -> None:
        self._page = page

    def name(self) -> str:
        return "it"

    async def request(self, method: str, params: Any) -> Any:
        return self._page(None if params is None else params["cursor"])


async def test_pages_that_do_not_end_are_ended() -> None:
    circle: Any = Paged(lambda cursor: {"prompts": [{"name": "a"}, 7], "nextCursor": "again"})
    endless: Any = Paged(lambda cursor: {"prompts": "none", "nextCursor": f"{cursor}x"})

    assert await list_all(circle, "prompts/list", "prompts") == [{"name": "a"}, {"name": "a"}]
    with pytest.raises(ServerError, match=f"more than {MAX_PAGES} pages"):
        await list_all(endless, "prompts/list", "prompts")


async def test_a_later_page_that_fails_is_an_error() -> None:
    def page(cursor: Any) -> Any:
        if cursor is None:
            return {"nextCursor": "b"}
        raise ServerError("no", code=-32601)

    failing: Any = Paged(page)
    with pytest.raises(ServerError):
        await list_all(failing, "prompts/list", "prompts")


def test_a_prompt_with_odd_arguments_is_a_row_all_the_same() -> None:
    assert row({"name": "a", "arguments": "none"}) == ("a", "")


# -- contents --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "out"),
    [
        ("shop://readme.md", "# The shop\n\nOpen **daily**, 8 €.\n"),
        ("shop://two.txt", "one\ntwo"),
        ("shop://escapes", "a\x1b[2Jb\n"),
    ],
)
def test_text_goes_through_a_pipe_as_it_is(uri: str, out: str, inside: Inside, config: Path) -> None:
    assert inside("read", "shop", uri, "-c", config).out == out


def test_binary_and_text_go_to_files(inside: Inside, config: Path, tmp_path: Path) -> None:
    one, folder = tmp_path / "one.png", tmp_path / "all"

    alone = inside("read", "shop", "shop://sign.png", "-o", one, "-c", config)
    several = inside("read", "shop", "shop://mixed", "-o", f"{folder}/", "-c", config)

    assert (alone.out, alone.err) == ("", f"saved {one}\n")
    assert one.read_bytes() == BINARY
    assert several.err.endswith(f"saved {folder / 'mixed.png'}\nsaved {folder / 'about.txt'}\n")
    assert (folder / "about.txt").read_text() == "about"


def test_of_several_contents_the_first_is_read_and_the_others_are_told(inside: Inside, config: Path) -> None:
    ended = inside("read", "shop", "shop://mixed", "--log-level", "error", "-c", config)

    assert ended.out == BINARY.decode(errors="replace")
    assert ended.err == "the first of 2 contents; -o FOLDER/ saves each, --json shows all of them\n"


def test_json_gives_the_content_with_its_parts(inside: Inside, config: Path) -> None:
    document = inside("read", "shop", "shop://mixed", "--json", "-c", config).document

    assert document["encoding"] == "base64"
    assert document["content"] == PIXEL
    assert [part["text"] for part in document["parts"]] == ["about"]


def test_a_uri_that_is_no_resource_is_told_with_what_to_do(inside: Inside, config: Path) -> None:
    ended = inside("read", "shop", "shop://nothing", "-c", config)

    assert (ended.status, ended.out) == (1, "")
    assert "tooling 'shop': read_resource 'shop://nothing': the server answered: no resource" in ended.err
    assert "`toolpost resources` lists what there is" in ended.err


# -- terminals -------------------------------------------------------------------------------------


def test_binary_is_not_shown_on_a_terminal(config: Path) -> None:
    status, screen = at_terminal("read", "shop", "shop://sign.png", "-c", config, columns=40, NO_COLOR="1")

    assert status == 2
    assert "error: resource 'shop://sign.png' is binary (image/png, 10 bytes)" in screen
    assert "save it with -o FILE" in screen
    assert "PNG" not in screen


def test_text_is_coloured_on_a_terminal_by_its_type(
    inside: Inside, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")

    coloured = inside("read", "shop", "shop://readme.md", "-c", config).out
    escapes = inside("read", "shop", "shop://escapes", "-c", config).out
    forced = inside("read", "shop", "shop://escapes", "-o", "-", "-c", config).out
    monkeypatch.setenv("NO_COLOR", "1")
    plain = inside("read", "shop", "shop://readme.md", "-c", config).out

    assert "\x1b[" in coloured
    assert plain == "# The shop\n\nOpen **daily**, 8 €.\n"
    assert escapes == "a�[2Jb\n"  # a file must not move the cursor
    assert forced == "a\x1b[2Jb\n"


@pytest.mark.parametrize(
    ("mime_type", "uri", "lexer"),
    [
        ("application/json", "x://a", "json"),
        ("application/ld+json; charset=utf-8", "x://a", "json"),
        ("application/x-yaml", "x://a", "yaml"),
        ("text/xml", "x://a", "xml"),
        ("text/markdown", "x://a", "markdown"),
        ("text/plain", "file:///a/b.py", "python"),
        (None, "file:///a/b.toml", "toml"),
        (None, "file:///a/b.unheard-of", None),
        (None, "memory://graph", None),
        ("text/plain", "http://[", None),
    ],
)
def test_the_language_is_that_of_the_type_or_of_the_name(
    mime_type: str | None, uri: str, lexer: str | None
) -> None:
    assert highlight.lexer_of(mime_type, uri) == lexer


def test_a_long_text_stays_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    text = "[" + "1," * highlight.BOUND + "1]"

    assert highlight.highlighted(text, mime_type="application/json", uri="x://a") == text


def test_reading_is_byte_by_byte_whatever_the_locale(config: Path) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}

    ended = toolpost("read", "shop", "shop://readme.md", "-c", config, env=ascii_only)

    assert ended.out == "# The shop\n\nOpen **daily**, 8 €.\n"
