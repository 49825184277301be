"""A page of the documentation as something to do: its files are written, its commands are run.

Every code block of a page counts. A `console` block holds commands after `$ ` and what a terminal shows of
them; a line `…` stands for any lines, and `^C` for the key. A `text` block is a figure. Any other block is a
file: in docs/ it includes one of docs/snippets/<page>/ or examples/ and names it as its title; in the README
it is the file that is named last before it.

With UPDATE_DOCS=1 in the environment, what commands really print is written into the page.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests import real
from tests.cli.support import ROOT, environment

DOCS = ROOT / "docs"
SNIPPETS = DOCS / "snippets"
EXAMPLES = ROOT / "examples"
UPDATE = os.environ.get("UPDATE_DOCS") == "1"
BOUND_SECS = 60
"""No command of a page takes longer."""

HOME = "/home/ada/demo"
"""How pages call the reader's folder."""

_FENCE = re.compile(r"^```(?P<lang>[\w-]*)(?P<more>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_INCLUDE = re.compile(r'--8<-- "(?P<path>[^"]+)"\n')
_TITLE = re.compile(r'title="(?P<name>[^"]+)"')
_NAMED = re.compile(r"`([\w./-]+\.(?:py|toml|json))`")
_READ_BY = {"toolpost.toml": "$ toolpost", "pytest.ini": "$ pytest"}
"""Files that a command reads without naming them."""
_NOT_RUN = ("pip install ", "npm install ")
"""It would ask the network, and what it installs is there."""
_MEMORY = "TOOLPOST__TOOLING__MEMORY__ENV__MEMORY_FILE_PATH"
"""Where the server of the README keeps its graph."""


@dataclass(frozen=True)
class Block:
    """One code block of a page."""

    lang: str
    title: str
    body: str
    span: tuple[int, int]
    """Where the body stands in the page."""
    before: str
    """The page's text up to here."""

    @property
    def is_code(self) -> bool:
        """Whether it is anything but a figure."""
        return self.lang != "text"

    @property
    def included(self) -> Path | None:
        """The snippet, or the file of an example, that is the whole of it."""
        found = _INCLUDE.fullmatch(self.body)
        if found is None:
            return None
        return (ROOT if found["path"].startswith("examples/") else SNIPPETS) / found["path"]

    @property
    def example(self) -> Path | None:
        """The folder of the example that it shows a file of."""
        where = self.included
        return where.parent if where is not None and where.is_relative_to(EXAMPLES) else None

    @property
    def file(self) -> str | None:
        """The name under which it is written in the reader's folder."""
        if self.lang == "console" or not self.is_code:
            return None
        named = _NAMED.findall(self.before)
        return self.title or (named[-1] if named else None)


@dataclass
class Page:
    """One page."""

    path: Path
    text: str = field(init=False)

    def __post_init__(self) -> None:
        self.text = self.path.read_text()

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def snippets(self) -> Path:
        """Where its files lie."""
        return (
            SNIPPETS / self.path.relative_to(DOCS).with_suffix("")
            if self.path.is_relative_to(DOCS)
            else self.path.parent
        )

    def blocks(self) -> Iterator[Block]:
        """Its code blocks in order."""
        for match in _FENCE.finditer(self.text):
            title = _TITLE.search(match["more"])
            yield Block(
                match["lang"],
                title["name"] if title else "",
                match["body"],
                match.span("body"),
                self.text[: match.start()],
            )


def pages() -> list[Page]:
    """The README and every page of the site."""
    return [Page(ROOT / "README.md"), *map(Page, sorted(DOCS.rglob("*.md")))]


def untested(page: Page) -> list[str]:
    """Code of the page that no command of it uses."""
    blocks = [block for block in page.blocks() if block.is_code]
    run = "".join(block.body for block in blocks if block.lang == "console")
    found: list[str] = []
    if page.text.count("```") != 2 * len([*page.blocks()]):
        found.append("a fence that is indented or not closed")
    for block in blocks:
        if block.lang != "console" and block.file is None:
            found.append(f"code that is in no file: {block.body.splitlines()[0]}")
        elif block.lang != "console" and not _is_used(block, blocks, run):
            found.append(f"a file that no command uses: {block.file}")
    return found


def _is_used(block: Block, blocks: list[Block], run: str) -> bool:
    """Whether a command names the file, or is one that reads it, or another file names it."""
    name = Path(str(block.file)).name
    if name in run or (name in _READ_BY and _READ_BY[name] in run):
        return True
    others = [(each.included.read_text() if each.included else each.body) for each in blocks if each != block]
    return bool(run) and any(name in text or f"import {Path(name).stem}\n" in text for text in others)


class Reader:
    """Somebody who does what a page says, in a folder of their own."""

    def __init__(self, page: Page, folder: Path) -> None:
        self._page = page
        self._folder = self._root = folder
        self._variables = environment(
            PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            HOME=str(folder),
            TERM="dumb",
            NO_COLOR="1",
            COLUMNS="120",
            LINES="40",
            # `npx -y …` starts what `make servers` has installed
            npm_config_offline="true",
            # pytest-asyncio, which is here for other tests, has a warning for whoever sets no option of it
            PYTEST_ADDOPTS="-p no:asyncio",
            npm_config_cache=str(folder / ".npm"),
        )
        (folder / "node_modules").symlink_to(real.SERVERS / "node_modules")
        if not page.path.is_relative_to(DOCS):
            # by default this server keeps its graph beside its own code
            self._variables[_MEMORY] = str(folder / "memory.jsonl")

    def follow(self) -> list[str]:
        """Do everything in order; gives what is not as the page says."""
        for example in {where for block in self._page.blocks() if (where := block.example) is not None}:
            installed = shutil.ignore_patterns("node_modules", "*.wasm")
            to = self._folder / example.relative_to(ROOT)
            shutil.copytree(example, to, ignore=installed, dirs_exist_ok=True)
        hidden = self._page.snippets
        if self._page.path.is_relative_to(DOCS) and hidden.is_dir():
            shown = {block.included for block in self._page.blocks()}
            for file in hidden.iterdir():
                if file not in shown and file.is_file():
                    shutil.copy(file, self._folder)
        wrong: list[str] = []
        bodies: list[tuple[tuple[int, int], str]] = []
        for block in self._page.blocks():
            if block.lang == "console":
                real_body = "".join(self._run(*each) for each in commands(block.body))
                if not same(block.body, real_body):
                    wrong.append(f"-- the page says\n{block.body}-- it is\n{real_body}")
                    bodies.append((block.span, real_body))
            elif block.file is not None:
                self._write(block)
        if wrong and UPDATE:
            text = self._page.text
            for (start, end), body in reversed(bodies):
                text = text[:start] + body + text[end:]
            self._page.path.write_text(text)
            return []
        return wrong

    def _write(self, block: Block) -> None:
        assert block.file is not None
        target = self._folder / block.file
        target.parent.mkdir(parents=True, exist_ok=True)
        source = block.included
        target.write_text(block.body if source is None else source.read_text())

    def _run(self, command: str, told: str) -> str:
        """The command and what a terminal shows of it."""
        words = shlex.split(command, comments=True)
        match words:
            case ["cd", where]:
                self._folder = self._folder / where
                shown = ""
            case ["export", *pairs]:
                self._variables |= dict(pair.split("=", 1) for pair in pairs)
                shown = ""
            case ["unset", *names]:
                for name in names:
                    del self._variables[name]
                shown = ""
            case _ if command.startswith(_NOT_RUN):
                shown = told
            case _:
                shown = self._in_terminal(command, told)
        return f"$ {command}\n{shown.replace(str(self._root), HOME)}"

    def _in_terminal(self, command: str, told: str) -> str:
        """Run it in a pseudo-terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._variables | {"PWD": str(self._folder)},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        wait_for = told.partition("^C\n")[0] if "^C\n" in told else None
        read = b""
        deadline = time.monotonic() + BOUND_SECS
        try:
            while time.monotonic() < deadline:
                if select.select([ours], [], [], 0.1)[0]:
                    try:
                        piece = os.read(ours, 65536)
                    except OSError:  # on Linux: the other end is closed
                        piece = b""
                    if not piece:
                        break
                    read += piece
                if wait_for is not None and same(wait_for, shown(read)):
                    os.killpg(process.pid, signal.SIGINT)
                    read += b"^C\n"
                    wait_for = None
            else:
                read += b"(it did not end)\n"
        finally:
            if process.poll() is None and time.monotonic() >= deadline:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(BOUND_SECS)
            os.close(ours)
        return shown(read)


def shown(read: bytes) -> str:
    """What a terminal shows of these bytes."""
    lines = read.decode(errors="replace").replace("\r\n", "\n").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def commands(body: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what follows it."""
    assert body.startswith("$ "), f"a console block starts with `$ `: {body!r}"
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, told = part.partition("\n")
        while command.endswith("\\"):
            line, _, told = told.partition("\n")
            command = f"{command}\n{line}"
        yield command, told


_VARYING = [
    # shown where it took long
    (re.compile(r"^(PASS|FAIL) (.*) \(\d+\.\d+ s\)$", re.MULTILINE), r"\1 \2"),
    (re.compile(r"^(PASS|FAIL) (.* \(\d+ seeds), \d+\.\d+ s\)$", re.MULTILINE), r"\1 \2)"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(ms|s)\b"), r"<n> \1"),
    (re.compile(r"\b\d+\.\d+\.\d+\b"), "<version>"),
    (re.compile(r"(mcp \((?:stdio|http)\).*)\b\d+$", re.MULTILINE), r"\1<n>"),  # milliseconds to connect
    (re.compile(r" {2,}"), "  "),  # columns are as wide as what varies in them
]


def same(page: str, real_text: str) -> bool:
    """Whether a page's text is what was really shown, apart from what is different each time."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*?") + "\n"
        for line in _even(page).splitlines()
    )
    return re.fullmatch(pattern, _even(real_text)) is not None


def _even(text: str) -> str:
    for pattern, stand_in in _VARYING:
        text = pattern.sub(stand_in, text)
    return text
