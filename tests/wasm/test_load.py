"""What is no guest for this host is refused before anything runs, with what is missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import toolpost
from tests.wasm import wat
from tests.wasm.support import config, outcome
from toolpost.wasm import engine
from toolpost.wasm.calls import HOST, METHODS, SUBSCRIPTIONS
from toolpost.wasm.wit import PACKAGE, RESOURCE, VERSION, WIT, WORLD, functions


def refusal(folder: Path, content: bytes) -> str:
    path = wat.write(folder, "guest", content)
    with pytest.raises(toolpost.ConfigError) as caught:
        toolpost.run(config(path))
    (problem,) = caught.value.problems
    assert problem.startswith(f"config: agents.ada.script: {path} ")
    return problem.removeprefix(f"config: agents.ada.script: {path} ")


RUN = """
  (core module $m (memory (export "m") 1) (func (export "run") (result i32) (i32.const 64)))
  (core instance $i (instantiate $m))
  (func (export "run") (result (result (option string) (error string)))
    (canon lift (core func $i "run") (memory (core memory $i "m"))))
"""
ANOTHER_TYPE = "it imports {} of 'toolpost:agent/{}@0.1.0' as `{}`, and toolpost:agent@0.1.0 has `{}`"
NO_RUN = "it exports {}, and no 'run': the world 'agent' of toolpost:agent@0.1.0 has that"


@pytest.mark.parametrize("content", [b"", b"hello", b"(component)", b"\0asm"])
def test_a_file_that_is_no_webassembly(content: bytes, tmp_path: Path) -> None:
    told = "is a core module" if content == b"\0asm" else "is no WebAssembly component"

    assert refusal(tmp_path, content).startswith(told)


def test_a_core_module(tmp_path: Path) -> None:
    assert refusal(tmp_path, wat.assemble("(module)")) == (
        "is a core module: make a component of it, as `wasm-tools component new` does"
    )


def test_a_component_that_is_cut_short(tmp_path: Path) -> None:
    assert refusal(tmp_path, wat.component(wat.FINE)[:-40]).startswith("cannot be loaded: ")


def importing(what: str) -> str:
    return f"(component (import {what}) {RUN})"


OTHERS = {
    "an empty one": ("(component)", NO_RUN.format("nothing")),
    "a command of WASI": (
        """(component (component $c) (instance $i (instantiate $c))
           (export "wasi:cli/run@0.2.0" (instance $i)))""",
        NO_RUN.format("'wasi:cli/run@0.2.0'"),
    ),
    "a future version": (
        importing('"toolpost:agent/host@0.2.0" (instance (export "later" (func)))'),
        "it imports 'toolpost:agent/host@0.2.0', and this toolpost has toolpost:agent@0.1.0: build it anew",
    ),
    "a function of a later patch": (
        importing('"toolpost:agent/host@0.1.7" (instance (export "later" (func)))'),
        "it imports later of 'toolpost:agent/host@0.1.7', which toolpost:agent@0.1.0 does not have",
    ),
    "an interface that is not there": (
        importing('"toolpost:agent/chat@0.1.0" (instance)'),
        "it imports 'toolpost:agent/chat@0.1.0', which toolpost:agent@0.1.0 does not have",
    ),
    "a WASI that is not there": (
        importing('"wasi:http/types@0.2.0" (instance)'),
        "it imports 'wasi:http/types@0.2.0', which toolpost does not offer",
    ),
    "something else": (importing('"other" (func)'), "it imports 'other', which toolpost does not offer"),
    "a function of another type": (
        importing('"toolpost:agent/host@0.1.0" (instance (export "now" (func (result string))))'),
        ANOTHER_TYPE.format("now", "host", "func() -> string", "func() -> f64"),
    ),
    "a function with another parameter": (
        importing(
            """"toolpost:agent/tooling@0.1.0" (instance
            (export "tooling" (type (sub resource)))
            (export "get" (func (param "name" u8) (result (result (own 0) (error string))))))"""
        ),
        ANOTHER_TYPE.format(
            *("get", "tooling"),
            "func(name: u8) -> result<tooling, string>",
            "func(name: string) -> result<tooling, string>",
        ),
    ),
    "another run": (
        """(component (core module $m (func (export "run"))) (core instance $i (instantiate $m))
           (func (export "run") (canon lift (core func $i "run"))))""",
        "its 'run' is not `func() -> result<option<string>, string>`, as in toolpost:agent@0.1.0",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_component_of_another_world(name: str, tmp_path: Path) -> None:
    text, problem = OTHERS[name]

    assert refusal(tmp_path, wat.assemble(text)) == f"is no guest for this host: {problem}"


def test_a_function_of_wasi_with_another_type_fails_the_guest_and_is_named(tmp_path: Path) -> None:
    """What WASI has is for the runtime to know, which looks when the guest starts."""
    text = importing('"wasi:cli/exit@0.2.0" (instance (export "exit" (func (param "status" string))))')

    told = str(outcome(wat.write(tmp_path, "guest", wat.assemble(text))).text)

    assert "`wasi:cli/exit@0.2.0`" in told
    assert "`exit` has the wrong type" in told


def test_the_missing_extra_is_named(tmp_path: Path) -> None:
    path = wat.write(tmp_path, "guest", wat.component(wat.FINE))
    program = f"""
import sys
sys.modules["wasmtime"] = None
import toolpost
toolpost.run({{"agents": {{"ada": {{"script": {path!r}}}}}}})
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.stderr.endswith(
        "config: agents.ada.script: guests need wasmtime: pip install 'toolpost[wasm]'\n"
    )


def test_the_host_and_the_interface_have_one_version() -> None:
    assert f"package {PACKAGE}@{VERSION};\n" in WIT.read_text()


def test_the_host_offers_each_function_of_the_interface() -> None:
    methods = {f"[method]{RESOURCE}.{name}" for name in METHODS | SUBSCRIPTIONS}
    offered = {"types": set[str](), "tooling": {"get", *methods}, "host": set(HOST), WORLD: {"run"}}

    assert {name: set(types) for name, types in functions().items()} == offered


# -- the cache -------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(engine, "_known", {})
    return tmp_path / "cache" / "toolpost" / "wasm"


def test_a_component_is_compiled_once(cache: Path, tmp_path: Path) -> None:
    path = wat.write(tmp_path, "guest", wat.component(wat.FINE))

    assert outcome(path).kind == "completed"
    (kept,) = cache.iterdir()
    made = kept.stat().st_ino
    engine._known.clear()  # pyright: ignore[reportPrivateUsage]: as in another process
    assert outcome(path).kind == "completed"

    assert [each.stat().st_ino for each in cache.iterdir()] == [made]
    assert cache.stat().st_mode & 0o777 == 0o700


def test_what_is_no_compiled_component_any_more_is_compiled_anew(cache: Path, tmp_path: Path) -> None:
    path = wat.write(tmp_path, "guest", wat.component(wat.FINE))
    outcome(path)
    (kept,) = cache.iterdir()
    kept.write_bytes(b"damaged")

    assert outcome(path).kind == "completed"
    assert kept.stat().st_size > 1000


def test_a_changed_guest_is_another_one(cache: Path, tmp_path: Path) -> None:
    assert outcome(wat.write(tmp_path, "guest", wat.component(wat.FINE))).kind == "completed"
    assert outcome(wat.write(tmp_path, "guest", wat.component(wat.FAILS))).kind == "failed"


def test_a_cache_that_cannot_be_written_is_done_without(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")

    assert outcome(wat.write(tmp_path, "guest", wat.component(wat.FINE))).kind == "completed"


def test_ctrl_c_does_not_wait_for_a_compilation(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, over, interrupted = threading.Event(), threading.Event(), threading.Event()

    def compiling(*_: object) -> None:
        """As in C, which hears of no interrupt."""
        begun.set()
        while not over.is_set():
            with suppress(KeyboardInterrupt):
                over.wait()

    def interrupt() -> None:
        begun.wait(10)
        signal.pthread_kill(main, signal.SIGINT)
        interrupted.wait(10)
        over.set()

    main = threading.get_ident()
    path = Path(wat.write(tmp_path, "guest", wat.component(wat.FINE)))
    monkeypatch.setattr(engine.Component, "__init__", compiling)
    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.compiled(path)
        assert not over.is_set()
    finally:
        interrupted.set()
        interrupter.join()


@pytest.mark.parametrize("others_may", [0o020, 0o002])
def test_a_cache_that_others_can_write_to_is_not_used(others_may: int, cache: Path, tmp_path: Path) -> None:
    """What is in it would be run as it is."""
    cache.mkdir(parents=True)
    cache.chmod(0o700 | others_may)

    assert outcome(wat.write(tmp_path, "guest", wat.component(wat.FINE))).kind == "completed"
    assert list(cache.iterdir()) == []


def test_guests_that_start_together_do_not_take_each_others_place_in_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "KEPT_BYTES", 1)
    tables = config(wat.write(tmp_path, "first", wat.component(wat.FINE)))
    tables["agents"]["bob"] = {"script": wat.write(tmp_path, "second", wat.component(wat.FAILS))}

    ended = toolpost.run(tables)

    assert ended == {"ada": toolpost.Outcome("completed"), "bob": toolpost.Outcome("failed", "no")}
    assert len(list(cache.iterdir())) == 2


def test_starts_at_once_leave_one_whole_file(cache: Path, tmp_path: Path) -> None:
    path = Path(wat.write(tmp_path, "guest", wat.component(wat.FINE)))
    start = threading.Barrier(4)

    def compile_it() -> None:
        start.wait()
        for _ in range(10):
            engine._from_cache(path)  # pyright: ignore[reportPrivateUsage]: as in processes of their own, without the lock

    threads = [threading.Thread(target=compile_it) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    (kept,) = cache.iterdir()
    engine.Compiled(kept, is_wrapped=False).load(engine.new_engine())


def test_what_was_not_used_for_longest_makes_room_in_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = wat.write(tmp_path, "first", wat.component(wat.FINE))
    outcome(first)
    (kept,) = cache.iterdir()
    monkeypatch.setattr(engine, "KEPT_BYTES", int(2.5 * kept.stat().st_size))
    second = wat.write(tmp_path, "second", wat.component(wat.FAILS))
    outcome(second)
    (old,) = set(cache.iterdir()) - {kept}
    os.utime(old, (0, 0))

    outcome(wat.write(tmp_path, "third", wat.component(wat.TRAPS)))

    assert len(list(cache.iterdir())) == 2
    assert kept.exists()
    assert not old.exists()
