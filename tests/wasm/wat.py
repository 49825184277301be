"""Tiny guests, written by hand as text: wasmtime makes components of them (`wasm-tools parse` would, too)."""

from __future__ import annotations

from pathlib import Path

from wasmtime import wat2wasm

FINE = "(i32.const 64)"
FAILS = "(i32.const 96)"
LOOPS = "(loop (br 0)) (i32.const 64)"
TRAPS = "unreachable"
RECURSES = "(call $deep) (i32.const 64)"
GROWS = "(loop (br_if 0 (i32.ne (i32.const -1) (memory.grow (i32.const 16))))) unreachable"

NOW = """
  (import "toolpost:agent/host@0.1.0" (instance $host (export "now" (func (result f64)))))
  (core func $now (canon lower (func $host "now")))
"""
EXIT = """
  (import "wasi:cli/exit@0.2.0" (instance $cli (export "exit" (func (param "status" (result))))))
  (core func $exit (canon lower (func $cli "exit")))
"""
WAITS_HEAD = """
  (import "wasi:io/poll@0.2.0" (instance $poll_
    (export "pollable" (type $p (sub resource)))
    (export "[method]pollable.ready" (func (param "self" (borrow $p)) (result bool)))
    (export "[method]pollable.block" (func (param "self" (borrow $p))))
    (export "poll" (func (param "in" (list (borrow $p))) (result (list u32))))))
  (alias export $poll_ "pollable" (type $pollable))
  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
    (alias outer 1 $pollable (type $outer))
    (export "pollable" (type $p (eq $outer)))
    (export "subscribe-duration" (func (param "when" u64) (result (own $p))))))
"""
WAITS = """
  (core func $timer (canon lower (func $clock "subscribe-duration")))
  (core func $ready (canon lower (func $poll_ "[method]pollable.ready")))
  (core func $block (canon lower (func $poll_ "[method]pollable.block")))
  (core func $poll (canon lower (func $poll_ "poll")
    (memory (core memory $base "memory")) (realloc (core func $base "realloc"))))
  (core func $drop (canon resource.drop $pollable))
"""
SLEEPS = "(call $block (call $timer (i64.const 3600000000000))) (i32.const 64)"
HANDLES = """
  (import "toolpost:agent/tooling@0.1.0" (instance $toolings
    (export "tooling" (type $t (sub resource)))
    (export "get" (func (param "name" string) (result (result (own $t) (error string)))))))
  (alias export $toolings "tooling" (type $tooling))
  (core func $get (canon lower (func $toolings "get")
    (memory (core memory $base "memory")) (realloc (core func $base "realloc"))))
  (core func $drop (canon resource.drop $tooling))
"""
GET = "(call $get (i32.const 160) (i32.const 3) (i32.const 256))"
"""Gets the tooling `box`; its first handle is 1."""

_CALLS = {
    "get": "(param i32 i32 i32)",
    "drop": "(param i32)",
    "now": "(result f64)",
    "exit": "(param i32)",
    "timer": "(param i64) (result i32)",
    "ready": "(param i32) (result i32)",
    "block": "(param i32)",
    "poll": "(param i32 i32 i32)",
}
"""The core functions that a guest's text can call, and their types."""


def component(body: str, *, memory: int = 1, head: str = "", imports: str = "", calls: str = "") -> bytes:
    """A guest whose `run` is this body, which leaves the address of its result.

    At 64 there is `ok(none)`, at 96 `err("no")`.

    Args:
        body: The instructions.
        memory: How many pages of 64 KiB it has at first.
        head: What the component imports, at its head, where compilers write it.
        imports: What it imports elsewhere, and lowers to core functions.
        calls: The names of those.
    """
    names = calls.split()
    taken = "".join(f'(import "host" "{name}" (func ${name} {_CALLS[name]}))' for name in names)
    given = "".join(f'(export "{name}" (func ${name}))' for name in names)
    text = f"""
    (component
      {head}
      (core module $base_
        (memory (export "memory") {memory})
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 512))
        (data (i32.const 96) "\\01\\00\\00\\00\\80\\00\\00\\00\\02\\00\\00\\00")
        (data (i32.const 128) "no")
        (data (i32.const 160) "box"))
      (core instance $base (instantiate $base_))
      {imports}
      (core module $guest
        {taken}
        (import "base" "memory" (memory 1))
        (func $deep (call $deep))
        (func $refuse (param i32) (if (local.get 0) (then unreachable)))
        (func $run (export "run") (result i32) {body}))
      (core instance $made (instantiate $guest
        (with "base" (instance $base)) (with "host" (instance {given}))))
      (func (export "run") (result (result (option string) (error string)))
        (canon lift (core func $made "run") (memory (core memory $base "memory")))))
    """
    return assemble(text)


def waiting(body: str) -> bytes:
    """A guest that can wait as WASI has it."""
    return component(body, memory=2, head=WAITS_HEAD, imports=WAITS, calls="timer ready block poll drop")


def assemble(text: str) -> bytes:
    """Any component, or core module."""
    return bytes(wat2wasm(text))


def write(folder: Path, name: str, guest: bytes) -> str:
    """The guest as a file; gives its path."""
    path = folder / f"{name}.wasm"
    path.write_bytes(guest)
    return str(path)
