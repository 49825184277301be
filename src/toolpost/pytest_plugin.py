"""The pytest plugin: fixtures to test agents with, and test files of toolpost as tests of pytest.

Every run of pytest loads it wherever toolpost is installed. So it is thin, and what it needs of toolpost it
imports when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from toolpost.testing.fixtures import HostFactory, MockFactory
    from toolpost.testing.trace_view import TraceView

COLLECT = "toolpost_collect"
SUFFIX = ".test.toml"


# -- fixtures --------------------------------------------------------------------------------------


@pytest.fixture
def toolpost_mock() -> MockFactory:
    """Scripts mocks: `toolpost_mock("mcp").tool("echo").returns("hi")`."""
    from toolpost.testing.fixtures import MockFactory

    return MockFactory()


@pytest.fixture
def toolpost_host(toolpost_mock: MockFactory) -> Generator[HostFactory]:
    """Makes hosts, of a config and the mocks of the test: `toolpost_host("toolpost.toml").run(agent)`."""
    from toolpost.testing.fixtures import HostFactory

    hosts = HostFactory(toolpost_mock)
    yield hosts
    hosts.close()


@pytest.fixture
def toolpost_trace(toolpost_host: HostFactory) -> TraceView:
    """The trace of the latest host of the test: `toolpost_trace.expect([call("call_tool")])`."""
    from toolpost.testing.trace_view import TraceView

    return TraceView(lambda: toolpost_host.latest_trace)


# -- test files ------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(COLLECT, f"Run test files of toolpost (*{SUFFIX}).", type="bool", default=False)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name.endswith(SUFFIX) and parent.config.getini(COLLECT):
        return CaseFile.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType]: pytest has no types for it
    return None


class CaseFile(pytest.File):
    """A test file. It holds one case, and is read when that runs."""

    def collect(self) -> Iterator[CaseItem]:
        yield CaseItem.from_parent(self, name=self.path.name.removesuffix(SUFFIX))  # pyright: ignore[reportUnknownMemberType]


class CaseItem(pytest.Item):
    """The case of a test file."""

    def runtest(self) -> None:
        from toolpost.testing.aside import run_case_aside

        result = run_case_aside(self.path)
        if result.unused:
            self.add_report_section("call", "unused steps", "\n".join(result.unused))
        if result.status != "passed":
            raise CaseFailed(result.report)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report of the case; where toolpost itself is to blame, the traceback."""
        if isinstance(excinfo.value, CaseFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.nodeid.partition("::")[0]


class CaseFailed(Exception):
    """A case failed, or could not be run; its report."""
