"""The overview in a real browser, and what all pages share: themes, the menu on a phone, no scripts."""

from typing import Any

import pytest

from tests.acceptance.browser.browsing import PHONE, Theme
from tests.acceptance.browser.conftest import MakePage


@pytest.mark.parametrize(("theme", "size"), [("light", None), ("dark", None), ("light", PHONE)])
def test_the_overview_looks_right_everywhere(make_page: MakePage, demo_url: str, theme: Theme, size: Any) -> None:
    watched = make_page(demo_url, theme=theme, **({"size": size} if size else {}))
    page = watched.open("/")
    assert page.get_by_role("heading", name="Overview").is_visible()
    assert page.locator(".chart").count() == 3
    assert not watched.axe_faults()
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_chosen_theme_stays(make_page: MakePage, demo_url: str) -> None:
    page = make_page(demo_url).open("/")
    with page.expect_response("**/theme"):
        page.locator(".side").get_by_role("button", name="Dark").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.reload()
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_a_theme_is_chosen_without_scripts_too(make_page: MakePage, demo_url: str) -> None:
    page = make_page(demo_url, scripts=False).open("/?days=7")
    page.locator(".side").get_by_role("button", name="Dark").click()
    page.locator("html[data-theme=dark]").wait_for()
    assert page.url.endswith("/?days=7")


def test_the_menu_of_a_phone_opens_and_closes_by_keyboard(make_page: MakePage, demo_url: str) -> None:
    page = make_page(demo_url, size=PHONE).open("/")
    page.locator(".drawer > summary").focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("link", name="Overview").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_role("link", name="Overview").is_visible()


def test_an_empty_server_says_the_next_step(make_page: MakePage, empty_url: str) -> None:
    watched = make_page(empty_url)
    page = watched.open("/")
    assert page.get_by_text("Nothing has been published yet").is_visible()
    assert not watched.axe_faults()
