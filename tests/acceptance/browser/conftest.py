"""One browser and one server with demo data for all tests of this folder."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from reflexio.server.process import running_server
from tests.acceptance.browser.browsing import CHROMIUM, MISSING, WatchedPage, chromium, watched_page

MakePage = Callable[..., WatchedPage]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests run in one process: they share a browser, a server and its data."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("demo"))
            item.add_marker(pytest.mark.slow)


# For the package, not the session: while Playwright is open in a process, no test there can run an event loop.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip(MISSING)
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def demo_url(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the demo data. Tests that change something use `empty_url`."""
    folder = tmp_path_factory.mktemp("demo-in-browser") / "data"
    shutil.copytree(demo_folder, folder)
    with running_server(folder) as url:
        yield url


@pytest.fixture
def empty_url(tmp_path: Path) -> Iterator[str]:
    """A server with nothing in it."""
    with running_server(tmp_path / "data") as url:
        yield url


@pytest.fixture
def make_page(browser: Browser) -> Iterator[MakePage]:
    """Makes pages. The test fails when one of them had a fault that the test did not expect."""
    pages: list[WatchedPage] = []
    with ExitStack() as stack:

        def make(url: str, **options: Any) -> WatchedPage:
            pages.append(stack.enter_context(watched_page(browser, url, **options)))
            return pages[-1]

        yield make
        faults = [fault for page in pages for fault in page.faults]
    assert not faults, "\n".join(faults)
