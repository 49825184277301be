"""The guests of examples/wasm, where `make guests` has built them, on a real server and on doubles."""

from __future__ import annotations

import pytest

from tests import real
from tests.cli.support import ROOT, toolpost
from toolpost.wasm.engine import compiled

FOLDER = ROOT / "examples" / "wasm"


pytestmark = pytest.mark.timeout(600)


@pytest.fixture(autouse=True)
def built() -> None:
    """Compiled as well, since that takes longer than a command may here."""
    guests = [FOLDER / each / "agent.wasm" for each in ("python", "javascript")]
    if not all(each.exists() for each in guests):
        assert not real.CI, "CI builds the guests first: make guests"
        pytest.skip("`make guests` builds them")
    for each in guests:
        compiled(each)


def test_they_run_on_a_real_server() -> None:
    ended = toolpost("run", "-c", "examples/wasm/toolpost.toml")

    assert ended.status == 0, ended.err
    assert "found 'milk is out'" in ended.err
    assert "no file for me: FileNotFoundError" in ended.err
    assert "agent 'finder' exited: done" in ended.err
    assert "agent 'writer' exited: the last note says \"a guest in JavaScript was here\"" in ended.err


def test_they_pass_their_test_under_each_seed() -> None:
    ended = toolpost("test", "--seeds", "10", "examples/wasm")

    assert ended.status == 0, ended.out
    assert ended.out.startswith("PASS examples/wasm/guests.test.toml (10 seeds")
