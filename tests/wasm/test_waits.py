"""What stands between a guest and the waits of WASI waits as they do; what it does not fit stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolpost
from tests.wasm import wat
from tests.wasm.support import outcome
from toolpost.wasm.waits import interruptible

NEVER, SOON = "(call $timer (i64.const 3600000000000))", "(call $timer (i64.const 1000000))"
LATER = "(call $timer (i64.const 250000000))"
"""After more than one slice."""
WAITS = {
    "ready": f"(call $refuse (call $ready {NEVER}))",
    "block": f"""
        (local $later i32)
        (local.set $later {LATER})
        (call $block (local.get $later))
        (call $refuse (i32.eqz (call $ready (local.get $later))))""",
    # at 1024 what is waited for; at 256 the address and the length of the list of what is ready
    "poll one": f"""
        (i32.store (i32.const 1024) {LATER})
        (call $poll (i32.const 1024) (i32.const 1) (i32.const 256))
        (call $refuse (i32.ne (i32.load (i32.const 260)) (i32.const 1)))
        (call $refuse (i32.load (i32.load (i32.const 256))))""",
    "poll several": f"""
        (i32.store (i32.const 1024) {NEVER})
        (i32.store (i32.const 1028) {NEVER})
        (i32.store (i32.const 1032) {SOON})
        (i32.store (i32.const 1036) {NEVER})
        (call $poll (i32.const 1024) (i32.const 4) (i32.const 256))
        (call $refuse (i32.ne (i32.load (i32.const 260)) (i32.const 1)))
        (call $refuse (i32.ne (i32.load (i32.load (i32.const 256))) (i32.const 2)))""",
    # as many as fill a page of memory to its end, and so often that what is not given back fills all
    "poll many, again and again": f"""
        (local $at i32) (local $round i32)
        (local.set $at (i32.const 1024))
        (loop $fill
          (i32.store (local.get $at) {NEVER})
          (local.set $at (i32.add (local.get $at) (i32.const 4)))
          (br_if $fill (i32.lt_u (local.get $at) (i32.const {1024 + 4 * 16379}))))
        (i32.store (local.get $at) (call $timer (i64.const 0)))
        (loop $again
          (call $poll (i32.const 1024) (i32.const 16380) (i32.const 256))
          (call $refuse (i32.ne (i32.load (i32.const 260)) (i32.const 1)))
          (call $refuse (i32.ne (i32.load (i32.load (i32.const 256))) (i32.const 16379)))
          (local.set $round (i32.add (local.get $round) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $round) (i32.const 280))))""",
}


@pytest.mark.parametrize("name", WAITS)
def test_a_guest_waits_as_wasi_has_it(name: str, tmp_path: Path) -> None:
    guest = wat.waiting(f"{WAITS[name]} {wat.FINE}")

    assert interruptible(guest) != guest
    assert outcome(wat.write(tmp_path, "guest", guest)) == toolpost.Outcome("completed")


def test_to_wait_for_nothing_is_a_trap(tmp_path: Path) -> None:
    body = f"(call $poll (i32.const 1024) (i32.const 0) (i32.const 256)) {wat.FINE}"
    ended = outcome(wat.write(tmp_path, "guest", wat.waiting(body)))

    assert str(ended.text).startswith("wasm trap: wasm `unreachable`")


@pytest.mark.parametrize(
    "guest",
    [
        wat.component(wat.FINE),
        wat.component(wat.FINE, imports=wat.NOW, calls="now"),
        wat.component(wat.FINE, imports=wat.WAITS_HEAD + wat.WAITS, calls="timer ready block poll"),
        wat.assemble("(component)"),
        wat.assemble('(component (import "f" (func)))'),
    ],
    ids=["no imports", "other imports", "imports elsewhere", "nothing", "an import of another sort"],
)
def test_a_guest_without_such_waits_or_of_another_build_stays_as_it_is(guest: bytes) -> None:
    assert interruptible(guest) is guest


WAITING = wat.waiting(wat.FINE)


AGAIN = '(import "wasi:io/poll@0.2.1" (instance (export "pollable" (type (sub resource)))))'


@pytest.mark.parametrize(
    ("head", "elsewhere"), [("", wat.WAITS_HEAD), (wat.WAITS_HEAD + AGAIN, "")], ids=["elsewhere", "twice"]
)
def test_a_guest_whose_waits_could_not_be_interrupted_is_refused(
    head: str, elsewhere: str, tmp_path: Path
) -> None:
    guest = wat.component(wat.SLEEPS, head=head, imports=elsewhere + wat.WAITS, calls="timer block")

    with pytest.raises(
        toolpost.ConfigError, match=r"it imports 'wasi:io/poll@0\.2\.0' where its waits could"
    ):
        outcome(wat.write(tmp_path, "guest", guest))


@given(st.integers(0, 2000), st.binary(max_size=8), st.integers(0, 2000))
def test_a_damaged_guest_is_left_to_the_runtime(at: int, instead: bytes, end: int) -> None:
    interruptible(WAITING[:at] + instead + WAITING[at + len(instead) : len(WAITING) - end])
