"""Live progress in a real browser: a page follows an operation that works elsewhere, to its end."""

import time
from collections.abc import Callable
from typing import TypeVar

from playwright.sync_api import Page, expect

from reflexio.jobs import operations
from reflexio.models.optimisation import PlaybookOptimizationJob
from reflexio.ports.storage import Tx
from tests.acceptance.browser.conftest import MakePage
from tests.builders import name, on_database
from tests.conftest import Org, Running

T = TypeVar("T")


def write(server: Running, org: Org, step: Callable[[Tx], T]) -> T:
    return on_database(server.folder, lambda database: database.of(org.id).write(step))


def sign_in(page: Page, org: Org) -> None:
    page.get_by_label("API key").fill(org.token)
    page.get_by_role("button", name="Sign in").click()


def test_a_page_follows_an_operation(make_page: MakePage, server: Running, org: Org) -> None:
    operation_id, now = name("operation"), int(time.time())

    def begin(tx: Tx) -> None:
        operations.begin(tx, "profile_generation", operation_id, {}, now, total_users=2)

    write(server, org, begin)
    page = make_page(org.url).open("/sign-in?next=/operations")
    sign_in(page, org)
    bar = page.get_by_role("progressbar")
    expect(bar).to_have_js_property("value", 0)
    write(server, org, lambda tx: operations.record_user(tx, operation_id, "ann", now))
    expect(bar).to_have_js_property("value", 50)
    expect(page.get_by_text("1 of 2 done")).to_be_visible()
    write(server, org, lambda tx: operations.finish(tx, operation_id, now))
    expect(page.locator(".badge", has_text="completed")).to_be_visible()
    expect(bar).to_have_count(0)


def test_a_page_follows_a_run_of_the_optimiser(make_page: MakePage, server: Running, org: Org) -> None:
    now = int(time.time())
    new = PlaybookOptimizationJob(target_kind="agent_playbook", target_id=1, status="running", created_at=now)
    job = write(server, org, lambda tx: tx.optimisations.add(new))
    watched = make_page(org.url)
    page = watched.open(f"/sign-in?next=/optimisations/{job.job_id}")
    sign_in(page, org)
    expect(page.get_by_text("This run goes on")).to_be_visible()
    assert not watched.axe_faults()
    write(server, org, lambda tx: tx.optimisations.put(job.changed(best_score=0.75, evaluations=3)))
    expect(page.locator(".stat", has_text="Best score")).to_contain_text("0.75")
    ended = job.ended("completed", "No wording was better.", now)
    write(server, org, lambda tx: tx.optimisations.put(ended))
    expect(page.locator(".stat", has_text="Status")).to_contain_text("Completed")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
