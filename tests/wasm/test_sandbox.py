"""A guest reaches what it was granted, and nothing else of the machine."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import toolpost
from tests.wasm.support import config, outcome


@pytest.fixture
def server() -> Generator[socket.socket]:
    """One that listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture
def port(server: socket.socket) -> int:
    return server.getsockname()[1]


def seen(troupe: Path, params: dict[str, Any], sandbox: dict[str, Any] | None = None) -> dict[str, Any]:
    return json.loads(str(outcome(troupe, {"act": "see", **params}, sandbox=sandbox).text))


def test_a_guest_reads_no_file_sees_no_variable_and_reaches_no_socket(
    troupe: Path, tmp_path: Path, server: socket.socket, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAFE_WORD", "swordfish")
    (tmp_path / "secret.txt").write_text("swordfish")
    paths = [str(tmp_path / "secret.txt"), "/etc/passwd", "secret.txt"]

    found = seen(troupe, {"paths": paths, "writes": [str(tmp_path / "new.txt")], "port": port})

    assert "swordfish" not in json.dumps(found)
    assert found["env"] == {}
    assert found["argv"] == []
    assert {found[path] for path in paths} == {"FileNotFoundError"}
    assert not (tmp_path / "new.txt").exists()
    assert {found[each] for each in ("connect", "bind", "send")} == {"PermissionError"}
    assert found["look up"] == "gaierror"
    with pytest.raises(BlockingIOError):
        server.accept()


def test_a_folder_that_is_granted_can_be_read_and_nothing_beside_it(
    troupe: Path, tmp_path: Path, port: int
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("noted")
    (tmp_path / "secret.txt").write_text("swordfish")
    (tmp_path / "notes" / "link.txt").symlink_to(tmp_path / "secret.txt")
    paths = ["/notes/a.txt", "/notes/../secret.txt", "/notes/link.txt", str(tmp_path / "secret.txt")]
    params = {"paths": paths, "writes": ["/notes/a.txt", "/notes/b.txt"], "port": port}

    found = seen(troupe, params, {"preopens": {"/notes": {"path": str(tmp_path / "notes")}}})

    assert found["/notes/a.txt"] == "noted"
    assert "swordfish" not in json.dumps(found)
    assert (tmp_path / "notes" / "a.txt").read_text() == "noted"
    assert not (tmp_path / "notes" / "b.txt").exists()


def test_a_folder_that_is_granted_as_writable_can_be_written(troupe: Path, tmp_path: Path, port: int) -> None:
    grant = {"/out": {"path": str(tmp_path), "writable": True}}

    seen(troupe, {"paths": [], "writes": ["/out/b.txt"], "port": port}, {"preopens": grant})

    assert (tmp_path / "b.txt").read_text() == "by a guest"


def test_a_granted_folder_that_is_gone_when_the_guest_starts_is_named(troupe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    loaded = toolpost.load_config(config(troupe, sandbox={"preopens": {"/notes": {"path": str(folder)}}}))
    folder.rmdir()

    told = f"the folder {folder} (sandbox.preopens, as /notes) cannot be opened"
    assert toolpost.run(loaded) == {"ada": toolpost.Outcome("failed", told)}


def test_a_variable_that_is_granted_is_the_only_one(troupe: Path, port: int) -> None:
    assert os.environ
    found = seen(troupe, {"paths": [], "port": port}, {"env": {"MODE": "careful"}})

    assert found["env"] == {"MODE": "careful"}


def test_what_a_guest_prints_is_logged_by_lines_with_secrets_masked(
    troupe: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "a-secret-of-the-test"
    tables = config(troupe, {"act": "speak", "secret": secret}, sandbox={"env": {"KEY": secret}})

    with caplog.at_level(logging.INFO, "toolpost.agent.ada"):
        toolpost.run(tables)

    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("INFO", "one line, and"),
        ("WARNING", "***"),
        ("INFO", "another: Zürich"),
    ]


LAST = """
import sys
from pathlib import Path
from types import SimpleNamespace
from toolpost.config import Sandbox
from toolpost.wasm.engine import compiled
from toolpost.wasm.guest import Guest

guest = Guest("ada", compiled(Path(sys.argv[1])), Sandbox())
sys.setswitchinterval(1000)  # other threads that want to run Python get to it when the interpreter ends
guest(SimpleNamespace(name="ada", params={"act": "speak"}))
"""


def test_a_process_ends_well_right_after_a_guest_that_printed(troupe: Path) -> None:
    """Tried several times: what goes wrong is the runtime's thread, which may have been quicker."""
    for _ in range(6):
        program = [sys.executable, "-c", LAST, str(troupe)]
        ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)

        assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("stdout", "shown"), [("discard", ""), ("inherit", "one line, and\nanother: Zürich")]
)
def test_what_a_guest_prints_goes_where_it_may(
    stdout: str, shown: str, troupe: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, "toolpost.agent.ada"):
        outcome(troupe, {"act": "speak"}, sandbox={"stdout": stdout})

    assert caplog.records == []
    assert capfd.readouterr().out == shown
