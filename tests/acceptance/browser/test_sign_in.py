"""Signing in with a key in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reflexio.models.access import KeyScope
from reflexio.server.process import running_server
from tests.acceptance.browser.browsing import PHONE
from tests.acceptance.browser.conftest import MakePage
from tests.builders import new_key


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[tuple[str, str, str]]:
    """A server with keys: its address, a key with all scopes, and one that may only publish."""
    folder = tmp_path / "data"
    key = new_key(folder, "acme", owner="Rita")
    publisher = new_key(folder, "acme", scopes=frozenset({KeyScope.PUBLISH}))
    with running_server(folder) as url:
        yield url, key, publisher


def test_a_person_signs_in_and_out(make_page: MakePage, keyed: tuple[str, str, str]) -> None:
    url, key, publisher = keyed
    watched = make_page(url)
    watched.expected_statuses.add(403)
    page = watched.open("/learnings?kind=profile")
    assert page.url == f"{url}/sign-in?next=%2Flearnings%3Fkind%3Dprofile"
    assert not watched.axe_faults()
    page.get_by_label("API key").fill("rfx_wrong")
    page.keyboard.press("Enter")
    page.get_by_text("This key is not valid here").wait_for()
    page.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")
    page.wait_for_url("**/learnings?kind=profile")
    assert page.locator(".side .who").get_by_text("Rita").is_visible()
    page.locator(".side").get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")
    page.get_by_label("API key").fill(publisher)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("This key may not read").wait_for()
    assert page.get_by_role("link", name="Learnings").count() == 0


def test_a_link_from_another_site_finds_the_session(make_page: MakePage, keyed: tuple[str, str, str]) -> None:
    url, key, _ = keyed
    page = make_page(url, size=PHONE).open("/sign-in")
    page.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Overview").wait_for()
    page.goto("about:blank")
    page.set_content(f'<a href="{url}/learnings?kind=profile">a link in a chat</a>')
    page.get_by_role("link").click()
    page.get_by_role("heading", name="Learnings").wait_for()
    assert page.url == f"{url}/learnings?kind=profile"


@pytest.mark.parametrize("target", ["//example.org", "/%09/example.org", "/%5Cexample.org", "https://example.org"])
def test_signing_in_never_leads_elsewhere(make_page: MakePage, keyed: tuple[str, str, str], target: str) -> None:
    url, key, _ = keyed
    page = make_page(url).open(f"/sign-in?next={target}")
    page.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Overview").wait_for()
    assert page.url == f"{url}/"
