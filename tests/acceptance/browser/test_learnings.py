"""Learnings in a real browser: lists, the picture of a lineage, and the whole life of one learning."""

from typing import Any

import pytest

from tests.acceptance.browser.browsing import PHONE, Theme
from tests.acceptance.browser.conftest import MakePage

FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.mark.parametrize(("theme", "size"), [("light", None), ("dark", PHONE)])
def test_lists_and_one_playbook_look_right_everywhere(
    make_page: MakePage, demo_url: str, theme: Theme, size: Any
) -> None:
    watched = make_page(demo_url, theme=theme, **({"size": size} if size else {}))
    for kind in ("agent_playbook", "user_playbook", "profile"):
        page = watched.open(f"/learnings?kind={kind}")
        assert page.locator("tbody tr").count() > 10
        assert not watched.axe_faults()
        assert page.evaluate(FITS)
    page = watched.open("/learnings?review=approved")
    page.locator("a.row-title").first.click()
    page.locator(".history li").first.wait_for()
    assert page.locator("svg.lineage a").count() >= 4
    assert page.locator(".history li").count() >= 2
    assert not watched.axe_faults()
    assert page.evaluate(FITS)


def test_the_picture_leads_to_the_words_that_were_said(make_page: MakePage, demo_url: str) -> None:
    page = make_page(demo_url).open("/learnings?review=approved")
    page.locator("a.row-title").first.click()
    page.locator("svg.lineage a.quote").first.click()
    page.locator(".turn.target mark").first.wait_for()
    assert "/conversations/session?" in page.url
    page.locator(".learned a").first.click()
    page.locator("svg.lineage").wait_for()


def test_search_finds_by_meaning_and_filters_take_effect_at_once(make_page: MakePage, demo_url: str) -> None:
    page = make_page(demo_url).open("/learnings")
    page.get_by_label("Search by words and meaning").fill("parcel lost")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=parcel+lost*")
    page.locator("tbody").get_by_text("neighbours").first.wait_for()
    page.get_by_label("Review").select_option("approved")
    page.wait_for_url("**review=approved*")
    assert page.get_by_text("waits for review").count() == 0


@pytest.mark.parametrize("scripts", [True, False])
def test_a_learning_lives_its_life(make_page: MakePage, empty_url: str, scripts: bool) -> None:
    page = make_page(empty_url, scripts=scripts).open("/learnings?kind=agent_playbook")
    page.get_by_role("link", name="Add by hand").click()
    page.get_by_label("When it applies").fill("The user asks for a refund")
    page.get_by_label("What the agent should do").fill("Ask for the order number.")
    page.get_by_role("button", name="Add").click()
    page.get_by_role("heading", name="Ask for the order number.").wait_for()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("What the agent should do").fill("Ask for the order number and the date.")
    page.get_by_label("Reason for this edit").fill("The number alone was not enough.")
    page.get_by_role("button", name="Save").click()
    assert page.locator("ins").inner_text() == " and the date"
    page.get_by_label("Reason", exact=True).fill("Agreed in the team.")
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("Agreed in the team.").wait_for()
    page.get_by_role("button", name="Undo the last decision").click()
    page.get_by_text("waits for review").wait_for()
    page.get_by_role("button", name="Archive").click()
    page.get_by_role("button", name="Use again").click()
    page.locator("details.menu > summary").click()
    page.get_by_role("button", name="Delete for good").click()
    page.get_by_text("Nothing here yet").wait_for()
    assert page.url.endswith("/learnings?kind=agent_playbook")
