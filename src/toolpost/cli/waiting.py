"""What a terminal shows while a call is under way: a spinner, or a bar once the server reports progress.

Nothing is shown for the first moment, so that a quick call does not flicker, and nothing anywhere but on a
terminal.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from toolpost.cli.terminal import Talk, encodable

if TYPE_CHECKING:
    from toolpost.tooling.port import Progress

PATIENCE_SECS = 0.3
FRAME_SECS = 0.1
_BAR = 20
"""Cells of a bar."""


class Waiting:
    """One line of progress for one call."""

    def __init__(self, talk: Talk, what: str) -> None:
        self._talk = talk
        self._what = what
        self._frame = 0
        self._told: Progress | None = None

    def told(self, progress: Progress) -> None:
        """The server says how far it is."""
        self._told = progress
        self._show()

    async def spin(self) -> None:
        """Draw until cancelled."""
        await anyio.sleep(PATIENCE_SECS)
        while True:
            self._show()
            self._frame += 1
            await anyio.sleep(FRAME_SECS)

    def _show(self) -> None:
        plain = not encodable("⠋█░", sys.stderr)
        self._talk.progress(line(self._what, self._told, self._frame, plain=plain))


@asynccontextmanager
async def waiting(talk: Talk, what: str) -> AsyncGenerator[Waiting]:
    """Show that something is being waited for, while the block runs. An error in it comes out in a group."""
    shown = Waiting(talk, what)
    if not talk.moves:
        yield shown
        return
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shown.spin)
        try:
            yield shown
        finally:
            tasks.cancel_scope.cancel()
            talk.progress("")


def line(what: str, told: Progress | None, frame: int, *, plain: bool) -> str:
    """The line at one moment. `plain` is for terminals that know ASCII only."""
    if told is None or not told.total:
        count = "" if told is None else f" {told.progress:g}"
        return f"{_turn(frame, plain=plain)} {what}{count}{_said(told)}"
    share = min(max(told.progress / told.total, 0.0), 1.0)
    return f"{what} {_bar(share, plain=plain)} {share:4.0%}  {told.progress:g}/{told.total:g}{_said(told)}"


def _said(told: Progress | None) -> str:
    return f"  {' '.join(told.message.split())}" if told is not None and told.message else ""


def _bar(share: float, *, plain: bool) -> str:
    full, empty = ("#", ".") if plain else ("█", "░")
    cells = round(share * _BAR)
    return full * cells + empty * (_BAR - cells)


def _turn(frame: int, *, plain: bool) -> str:
    frames: Sequence[str] = "|/-\\" if plain else "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
    return frames[frame % len(frames)]
