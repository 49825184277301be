"""The guests of these tests, built once: they and what they are compiled to stay in pytest's cache.

Workers that run tests at the same time share it; the first that needs a guest makes it, and the others wait.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.support import ROOT
from toolpost.wasm.build import build
from toolpost.wasm.engine import compiled
from toolpost.wasm.wit import WIT

AGENTS = Path(__file__).parent / "agents"
EXAMPLES = ROOT / "examples" / "testing"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test of a guest waits for it to be built."""
    for item in items:
        if "troupe" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session", autouse=True)
def compiled_once(request: pytest.FixtureRequest) -> Generator[None]:
    """Compiled components outlive the session, and are none of the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(request.config.cache.mkdir("toolpost-compiled")))
        yield


@contextmanager
def one_at_a_time(folder: Path) -> Generator[None]:
    """Of all processes; the system frees a lock whose holder has died."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def troupe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guest of agents/troupe.py."""
    sources = [*sorted(AGENTS.glob("*.py")), *sorted(EXAMPLES.glob("*.py"))]
    shim = WIT.with_name("python") / "toolpost.py"
    digest = hashlib.sha256(version("componentize-py").encode())
    for each in (WIT, shim, *sources):
        digest.update(each.read_bytes())
    folder = request.config.cache.mkdir("toolpost-guests")
    made = folder / f"troupe-{digest.hexdigest()[:20]}.wasm"
    with one_at_a_time(folder):
        if not made.exists():
            stage = tmp_path_factory.mktemp("troupe")
            for each in sources:
                shutil.copy(each, stage)
            for old in folder.glob("troupe-*.wasm"):
                old.unlink()
            beside = folder / "troupe-new.wasm"
            # relative, as users name them
            build(*(Path(os.path.relpath(each)) for each in (stage / "troupe.py", beside)))
            beside.replace(made)
        compiled(made)
    return made
