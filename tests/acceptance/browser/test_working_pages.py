"""Every working page in a real browser, in both themes and on a phone: no fault, nothing unreadable or cut off."""

from typing import Any

import pytest

from tests.acceptance.browser.browsing import PHONE
from tests.acceptance.browser.conftest import MakePage

PAGES = {
    "/review": "Review",
    "/review?edit=yes": "Review",
    "/playground": "Playground",
    "/playground?message=My+parcel+has+not+arrived&user=tessa.boyd": "Playground",
    "/optimisations": "Optimiser",
    "/optimisations/1": "Run 1",
    "/versions": "Versions compared",
    "/operations": "Operations",
    "/settings": "Settings",
    "/settings/models": "Settings",
    "/settings/keys": "Settings",
    "/status": "Status",
}
LOOKS: dict[str, dict[str, Any]] = {"light": {}, "dark": {"theme": "dark"}, "phone": {"size": PHONE}}


@pytest.mark.parametrize("look", LOOKS)
def test_working_pages_have_no_fault(make_page: MakePage, demo_url: str, look: str) -> None:
    watched = make_page(demo_url, **LOOKS[look])
    for path, title in PAGES.items():
        page = watched.open(path)
        assert page.get_by_role("heading", level=1).inner_text() == title
        assert not watched.axe_faults(), path
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path


def test_working_pages_of_an_empty_server_say_the_next_step(make_page: MakePage, empty_url: str) -> None:
    watched = make_page(empty_url)
    for path in ("/review", "/playground", "/optimisations", "/versions", "/operations", "/status"):
        page = watched.open(path)
        assert page.get_by_role("heading", level=1).is_visible()
        assert not watched.axe_faults(), path


def test_the_playground_says_why_each_line_is_in_the_context(make_page: MakePage, demo_url: str) -> None:
    page = make_page(demo_url).open("/playground")
    page.get_by_label("Message of the user").fill("My parcel is marked delivered but it is not here")
    page.get_by_label("User", exact=True).fill("tessa.boyd")
    page.get_by_role("button", name="Show the context").click()
    told = page.get_by_label("The context").inner_text()
    assert told.startswith("<learned>")
    lines = [line for line in told.splitlines() if line.startswith("- ")]
    reasons = page.locator(".played .why")
    assert reasons.count() == len(lines)
    assert page.locator(".played .why mark").first.is_visible()
    assert all(reason.inner_text() for reason in page.locator(".played .because").all())
    assert page.locator(".left-out .because").count() > 0


def test_one_run_shows_candidates_and_both_rollouts(make_page: MakePage, demo_url: str) -> None:
    page = make_page(demo_url).open("/optimisations")
    page.get_by_role("link", name="Run 1").click()
    assert page.locator(".chart-mark").count() > 1
    assert page.locator("ins").first.is_visible()
    evaluation = page.locator(".evaluation").first
    assert evaluation.locator(".bubble.user").count() > 0
    assert evaluation.locator(".reply").count() == 2 * evaluation.locator(".bubble.user").count()
    assert evaluation.locator(".orders tbody tr").count() == 2


def test_two_versions_are_compared_and_others_can_be_chosen(make_page: MakePage, demo_url: str) -> None:
    page = make_page(demo_url).open("/versions")
    assert page.locator("table.compared thead").inner_text().split() == ["shop-1", "shop-2"]
    page.get_by_label("Compare", exact=True).select_option("stay-1")
    page.wait_for_url("**first=stay-1**")
    assert page.locator("table.compared thead").inner_text().split() == ["stay-1", "shop-2"]
    assert page.locator(".chart-interval").count() == 2
