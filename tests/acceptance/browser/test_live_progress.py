"""Live progress in a real browser: a page follows an operation that works elsewhere, to its end."""

import time
from collections.abc import Callable

from playwright.sync_api import expect

from reflexio.jobs import operations
from reflexio.ports.storage import Tx
from tests.acceptance.browser.conftest import MakePage
from tests.builders import name, on_database
from tests.conftest import Org, Running


def test_a_page_follows_an_operation(make_page: MakePage, server: Running, org: Org) -> None:
    operation_id, now = name("operation"), int(time.time())

    def write(step: Callable[[Tx], object]) -> None:
        on_database(server.folder, lambda database: database.of(org.id).write(step))

    def begin(tx: Tx) -> None:
        operations.begin(tx, "profile_generation", operation_id, {}, now, total_users=2)

    write(begin)
    page = make_page(org.url).open("/sign-in?next=/operations")
    page.get_by_label("API key").fill(org.token)
    page.get_by_role("button", name="Sign in").click()
    bar = page.get_by_role("progressbar")
    expect(bar).to_have_js_property("value", 0)
    write(lambda tx: operations.record_user(tx, operation_id, "ann", now))
    expect(bar).to_have_js_property("value", 50)
    expect(page.get_by_text("1 of 2 done")).to_be_visible()
    write(lambda tx: operations.finish(tx, operation_id, now))
    expect(page.locator(".badge", has_text="completed")).to_be_visible()
    expect(bar).to_have_count(0)
