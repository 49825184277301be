"""Every code block of the documentation and the README does what the page says."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests import real
from tests.docs.scenario import SNIPPETS, Page, Reader, pages, untested

PAGES = pages()
WITH_CODE = [page for page in PAGES if any(block.is_code for block in page.blocks())]


@pytest.fixture(scope="module")
def followed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[dict[str, Future[list[str]]]]:
    """What is wrong with each page that is asked for; several are followed at once."""
    real.everything()  # skips where the servers of the pages are not installed
    real.time()
    cases: list[Any] = [getattr(item, "callspec", None) for item in request.session.items]
    asked = [case.params.get("page") for case in cases if case]
    with ThreadPoolExecutor(max_workers=3) as readers:
        yield {
            page.name: readers.submit(Reader(page, tmp_path_factory.mktemp("reader")).follow)
            for page in WITH_CODE
            if page in asked
        }


@pytest.mark.timeout(400)  # three pages at once, some with dozens of commands
@pytest.mark.needs_node
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_doing_what_a_page_says_shows_what_it_says(
    page: Page, followed: dict[str, Future[list[str]]]
) -> None:
    wrong = followed[page.name].result()

    assert wrong == [], "\n".join(["UPDATE_DOCS=1 writes into the page what is shown now", *wrong])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_code_block_is_run_or_is_a_file_that_is(page: Page) -> None:
    assert untested(page) == []


def test_each_code_block_of_the_site_is_a_file_of_its_page() -> None:
    for page in PAGES:
        for block in page.blocks():
            if page.name != "README.md" and block.file is not None:
                where = block.included
                assert where is not None, f"{page.name}: {block.title} is not included from docs/snippets"
                if block.example is None:
                    assert where.parent == page.snippets, f"{page.name}: {where} belongs to another page"
                assert where.name == Path(block.title).name
                assert where.exists()


def test_no_snippet_belongs_to_no_page() -> None:
    folders = {page.snippets for page in PAGES}

    assert [file for file in SNIPPETS.rglob("*") if file.is_file() and file.parent not in folders] == []
