"""`toolpost wasm build` and `toolpost wasm inspect`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import toolpost
from tests.wasm import wat
from toolpost.errors import ToolpostError, UsageError
from toolpost.wasm.build import build


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("absent.py", None, "there is no file '{}'"),
        ("my-agent.py", "", "'my-agent.py' cannot be imported under its name: rename it, as to agent.py"),
        *(
            (name, "", f"{name!r} cannot be imported under its name: rename it, as to agent.py")
            for name in ("toolpost.py", "class.py", "types.py")
        ),
    ],
)
def test_what_cannot_be_built_is_told_at_once(
    name: str, content: str | None, problem: str, tmp_path: Path
) -> None:
    agent = tmp_path / name
    if content is not None:
        agent.write_text(content)

    with pytest.raises(UsageError) as caught:
        build(agent, tmp_path / "agent.wasm")

    assert str(caught.value) == problem.format(agent)


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("absent/agent.wasm", "cannot be written: No such file or directory"),
        ("agent.py/agent.wasm", "cannot be written: Not a directory"),
        ("folder", "is no file: name the component to write"),
    ],
)
def test_where_nothing_can_be_written_nothing_is_built(output: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "agent.py").write_text("def run(host): ...")

    with pytest.raises(UsageError) as caught:
        build(tmp_path / "agent.py", tmp_path / output)

    assert str(caught.value) == f"{str(tmp_path / output)!r} {problem}"


def test_what_has_no_name_is_no_agent() -> None:
    assert toolpost("wasm", "build", ".").err == "error: there is no file '.'\n"


@pytest.mark.timeout(600)  # builds a guest of its own
def test_an_agent_that_cannot_be_imported_is_told_with_its_traceback_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUST_BACKTRACE", "1")
    agent, out = tmp_path / "agent.py", tmp_path / "agent.wasm"
    agent.write_text("import nowhere_to_be_found\n")
    out.write_text("built before")

    with pytest.raises(ToolpostError) as caught:
        build(agent, out)

    told = str(caught.value).splitlines()
    assert told[:2] == [f"componentize-py could not build {agent}:", "Traceback (most recent call last):"]
    assert "ModuleNotFoundError: No module named 'nowhere_to_be_found'" in told
    assert not any("stack backtrace" in line.lower() for line in told)
    assert out.read_text() == "built before"
    assert {each.name for each in tmp_path.iterdir()} <= {"agent.py", "agent.wasm", "__pycache__"}


def absent(_program: str) -> None:
    return None


def test_without_componentize_py_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agent.py").write_text("def run(host): ...")
    monkeypatch.setattr("shutil.which", absent)

    with pytest.raises(UsageError, match="pip install componentize-py"):
        build(tmp_path / "agent.py", tmp_path / "agent.wasm")


def test_inspect_shows_what_a_component_imports_and_exports(tmp_path: Path) -> None:
    guest = wat.component(f"(drop (call $now)) {wat.FINE}", imports=wat.NOW, calls="now")
    path = wat.write(tmp_path, "guest", guest)

    ended = toolpost("wasm", "inspect", path)
    as_json = toolpost("wasm", "inspect", "--json", path)

    assert ended.status == 0
    assert ended.out == (
        f"{path}: {len(guest)} bytes\n\nimports\n  toolpost:agent/host@0.1.0\n    now\n\nexports\n  run\n\n"
        "this host runs it\n"
    )
    assert json.loads(as_json.out) == {
        "file": path,
        "bytes": len(guest),
        "imports": {"toolpost:agent/host@0.1.0": ["now"]},
        "exports": {"run": []},
        "problems": [],
    }


def test_inspect_says_why_this_host_does_not_run_it(tmp_path: Path) -> None:
    path = wat.write(tmp_path, "guest", wat.assemble("(component)"))

    ended = toolpost("wasm", "inspect", path)

    assert ended.status == 1
    assert ended.out.endswith(
        "not for this host: it exports nothing, and no 'run':"
        " the world 'agent' of toolpost:agent@0.1.0 has that\n"
    )


def test_inspect_refuses_what_is_no_component(tmp_path: Path) -> None:
    ended = toolpost("wasm", "inspect", wat.write(tmp_path, "guest", b"hello"))

    assert ended.status == 2
    assert ended.err.endswith("is no WebAssembly component\n")
