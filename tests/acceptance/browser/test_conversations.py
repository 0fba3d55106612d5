"""Conversations in a real browser: search, filters, pages, and what was learned in the words that taught it."""

import re
from typing import Any

import pytest

from tests.acceptance.browser.browsing import PHONE, Theme
from tests.acceptance.browser.conftest import MakePage

TAUGHT = re.compile(r"^\d+ learnings?$")


@pytest.mark.parametrize(("theme", "size"), [("dark", None), ("light", PHONE)])
def test_lists_and_chats_look_right_everywhere(make_page: MakePage, demo_url: str, theme: Theme, size: Any) -> None:
    watched = make_page(demo_url, theme=theme, **({"size": size} if size else {}))
    page = watched.open("/conversations")
    assert page.locator("tbody tr").count() == 25
    assert not watched.axe_faults()
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.locator("tbody tr").filter(has=page.get_by_text(TAUGHT)).first.locator("a").first.click()
    page.locator(".said mark").first.wait_for()
    assert page.locator(".turn").count() >= 3
    assert not watched.axe_faults()
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_search_and_filters_are_in_the_address_and_need_no_script(make_page: MakePage, demo_url: str) -> None:
    page = make_page(demo_url, scripts=False).open("/conversations")
    page.get_by_label("Words that were said").fill("refund neighbours")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**q=refund+neighbours*")
    assert page.locator("tbody mark").count() > 3
    page.get_by_label("Agent version").select_option("shop-2")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**version=shop-2*")
    versions = page.locator('td[data-name="Agent"]').all_inner_texts()
    assert versions
    assert all("shop-2" in text for text in versions)
    page.get_by_role("link", name="Clear").click()
    page.wait_for_url("**/conversations")
    assert page.locator("tbody tr").count() == 25


def test_older_pages_show_other_conversations(make_page: MakePage, demo_url: str) -> None:
    page = make_page(demo_url).open("/conversations")
    first = page.locator("tbody a.row-title").evaluate_all("links => links.map(link => link.href)")
    page.get_by_role("link", name="Older").click()
    page.wait_for_url("**cursor=*")
    second = page.locator("tbody a.row-title").evaluate_all("links => links.map(link => link.href)")
    assert not set(first) & set(second)
    page.get_by_role("link", name="Newest").click()
    page.wait_for_url("**/conversations")
    assert page.locator("tbody a.row-title").evaluate_all("links => links.map(link => link.href)") == first


def test_a_search_without_results_says_what_to_do(make_page: MakePage, demo_url: str) -> None:
    page = make_page(demo_url).open("/conversations?q=xylophone")
    assert page.get_by_text("No conversation fits").is_visible()
