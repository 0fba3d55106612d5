"""The whole road in a real browser: users teach, a proposal is reviewed, and another user's prompt has the rule."""

from playwright.sync_api import expect

from reflexio.client.sync import ReflexioClient
from tests.acceptance.aggregation_talks import CUSTOMERS, complaint
from tests.acceptance.browser.conftest import MakePage

NEED = "My parcel is marked delivered, but there is nothing here!"
BETTER = "Ask whether the neighbours have the parcel, then offer a refund."


def test_what_users_teach_reaches_another_user_through_review(make_page: MakePage, empty_url: str) -> None:
    with ReflexioClient(url_endpoint=empty_url) as client:
        for number, user in enumerate(CUSTOMERS):
            client.publish_interaction(user, complaint(number), agent_version="v1", wait_for_response=True)

    watched = make_page(empty_url)
    page = watched.open("/")
    page.locator(".side").get_by_role("link", name="Operations").click()
    page.get_by_role("button", name="Aggregate").click()
    page.wait_for_url("**/operations/*-*")
    expect(page.locator(".badge", has_text="completed")).to_be_visible()

    page.get_by_role("link", name="See what waits for review").click()
    expect(page.locator(".badges", has_text="taught by").first).to_be_visible()
    assert page.locator(".evidence").count() > 1
    taught = page.locator("#proposal").inner_text()

    playground = f"/playground?message={NEED.replace(' ', '+')}&user=somebody-else&version=v1"
    assert taught not in watched.open(playground).locator("main").inner_text()

    watched.open("/review")
    page.keyboard.press("e")
    page.get_by_label("What the agent should do").fill(BETTER)
    page.get_by_role("button", name="Save and approve").click()
    expect(page.locator(".done")).to_contain_text(BETTER)
    expect(page.get_by_text("Nothing waits for review")).to_be_visible()

    told = watched.open(playground)
    assert BETTER in told.get_by_label("The context").inner_text()
    assert told.locator(".played .because").first.is_visible()

    page.locator(".side").get_by_role("link", name="Overview").click()
    expect(page.locator(".stat", has_text="Approved")).to_contain_text("1")
