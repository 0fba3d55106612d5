"""The review queue by keyboard alone, and without scripts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.browser.browsing import WatchedPage
from tests.acceptance.browser.conftest import MakePage
from tests.conftest import Org

CONTENTS = ("Ask the neighbours first.", "Send invoices as a file.", "Write the month as a word.")


@dataclass(frozen=True)
class Queue:
    """An organisation with three proposals that wait, in this order, and a browser that has signed in."""

    org: Org
    watched: WatchedPage

    def open(self) -> Page:
        return self.watched.open("/review")

    def review_of(self, content: str) -> str:
        with self.org.client() as client:
            playbooks = client.get_agent_playbooks(limit=10).agent_playbooks
        return next(playbook.playbook_status.value for playbook in playbooks if playbook.content == content)


@pytest.fixture
def make_queue(make_page: MakePage, org: Org) -> Callable[..., Queue]:
    def make(**options: Any) -> Queue:
        with org.client() as client:
            for content in reversed(CONTENTS):
                client.add_agent_playbooks([{"content": content, "trigger": "a parcel is late"}])
        watched = make_page(org.url, **options)
        page = watched.open("/sign-in")
        page.get_by_label("API key").fill(org.token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(org.url + "/")
        return Queue(org, watched)

    return make


def opened(page: Page) -> str:
    return page.locator("#proposal").inner_text()


def test_everything_is_done_by_keys(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue()
    watched = queue.watched
    page = queue.open()
    page.keyboard.press("j")
    expect(page.locator("#proposal")).to_have_text(CONTENTS[1])
    page.keyboard.press("k")
    expect(page.locator("#proposal")).to_have_text(CONTENTS[0])

    page.keyboard.press("a")
    expect(page.locator("#proposal")).to_have_text(CONTENTS[1])
    expect(page.locator(".done")).to_contain_text("Approved")
    expect(page.locator("#proposal")).to_be_focused()
    assert queue.review_of(CONTENTS[0]) == "approved"

    page.keyboard.press("r")
    expect(page.locator("#proposal")).to_have_text(CONTENTS[2])
    page.keyboard.press("u")
    expect(page.locator("#proposal")).to_have_text(CONTENTS[1])
    assert queue.review_of(CONTENTS[1]) == "pending"
    assert not watched.axe_faults()


def test_the_way_back_leads_to_the_proposal_before(make_queue: Callable[..., Queue]) -> None:
    page = make_queue().open()
    page.keyboard.press("j")
    expect(page.locator("#proposal")).to_have_text(CONTENTS[1])
    page.go_back()
    expect(page.locator("#proposal")).to_have_text(CONTENTS[0])
    page.keyboard.press("j")
    expect(page.locator("#proposal")).to_have_text(CONTENTS[1])


def test_wording_is_edited_by_keys_and_letters_in_a_field_are_letters(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue()
    page = queue.open()
    page.keyboard.press("e")
    content = page.get_by_label("What the agent should do")
    expect(content).to_be_focused()
    content.fill("")
    page.keyboard.type("rajku asks neighbours?")
    page.get_by_role("button", name="Save and approve").click()
    expect(page.locator(".done")).to_contain_text("rajku asks neighbours?")
    assert queue.review_of("rajku asks neighbours?") == "approved"
    assert queue.review_of(CONTENTS[1]) == "pending"


def test_several_are_ticked_by_keys_and_decided_at_once(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue()
    page = queue.open()
    page.keyboard.press("x")
    page.get_by_label(f"Select: {CONTENTS[2]}").check()
    page.get_by_role("button", name="Reject ticked").click()
    expect(page.locator(".done")).to_contain_text("Rejected: 2 agent playbooks")
    assert [queue.review_of(content) for content in CONTENTS] == ["rejected", "pending", "rejected"]
    page.keyboard.press("u")
    expect(page.get_by_text("3 proposals wait")).to_be_visible()
    page.keyboard.press("X")
    assert page.locator(".waiting input:checked").count() == len(CONTENTS)


def test_the_keys_are_shown_in_a_dialog(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue()
    watched = queue.watched
    page = queue.open()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert not watched.axe_faults()
    page.keyboard.press("a")
    assert queue.review_of(CONTENTS[0]) == "pending"
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()


def test_a_refused_decision_is_shown_in_the_page(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue()
    watched = queue.watched
    watched.expected_statuses.add(409)
    page = queue.open()
    with queue.org.client() as client:
        number = client.get_review_queue().items[0].agent_playbook.agent_playbook_id
        client.update_agent_playbook(agent_playbook_id=number, content="Never ask anybody.", reviewer="bob")
    page.keyboard.press("a")
    expect(page.get_by_role("alert")).to_contain_text("bob edited it")
    expect(page.get_by_role("alert").locator("ins")).to_contain_text("Never")
    assert opened(page) == "Never ask anybody."
    assert queue.review_of("Never ask anybody.") == "pending"


def test_decisions_work_without_scripts(make_queue: Callable[..., Queue]) -> None:
    page = make_queue(scripts=False).open()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Trigger: when").fill("a parcel is lost")
    page.get_by_role("button", name="Save and approve").click()
    assert page.locator(".done").inner_text().startswith("Approved")
    assert opened(page) == CONTENTS[1]
    page.get_by_role("button", name="Undo").click()
    assert opened(page) == CONTENTS[0]
