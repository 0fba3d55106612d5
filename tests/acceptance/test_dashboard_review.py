"""The review queue on a real server, with plain forms: decisions, edits, undo, and what is refused."""

from collections.abc import Callable, Iterator

import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.models.access import KeyScope
from reflexio.models.playbook import AgentPlaybook
from tests.builders import new_key
from tests.conftest import Org, Running
from tests.pages import OpenedPage, PageBrowser, browsing

PARCEL = "Ask the neighbours before you offer a refund."
INVOICE = "Send every invoice as a file."
DATES = "Write dates with the name of the month."


@pytest.fixture
def eve(server: Running, org: Org) -> Iterator[PageBrowser]:
    with browsing(org, new_key(server.folder, org.id, owner="eve")) as browser:
        yield browser


def add(client: ReflexioClient, *contents: str) -> list[int]:
    """Proposals, the first one first in the queue."""
    playbooks = [{"content": content, "trigger": "a parcel is late", "agent_version": "v1"} for content in contents]
    for playbook in reversed(playbooks):
        client.add_agent_playbooks([playbook])
    listed = client.get_agent_playbooks(limit=100).agent_playbooks
    by_content = {playbook.content: playbook.agent_playbook_id for playbook in listed}
    return [by_content[content] for content in contents]


def one(client: ReflexioClient, number: int) -> AgentPlaybook:
    """As it is stored now: the review queue is not cached by the client."""
    return client.get_review_queue(agent_playbook_id=number).items[0].agent_playbook


def status(client: ReflexioClient, number: int) -> str:
    return one(client, number).playbook_status.value


def decide(browser: PageBrowser, number: int, decision: str, reason: str = "") -> OpenedPage:
    form = browser.open(f"/review?playbook={number}").form("/review/decide")
    return browser.send(form, decision=decision, reason=reason)


def test_a_decision_is_recorded_under_the_owner_of_the_key_and_the_next_one_appears(
    client: ReflexioClient, eve: PageBrowser
) -> None:
    first, second = add(client, PARCEL, INVOICE)
    page = decide(eve, first, "approve", "seen it often")
    assert status(client, first) == "approved"
    assert status(client, second) == "pending"
    assert page.response.url.params["playbook"] == str(second)
    assert f'id="proposal" tabindex="-1">{INVOICE}' in page.text
    assert "1 proposal waits" in page.text
    event = client.get_review_queue(agent_playbook_id=first).items[0].history[-1]
    assert (event.actor, event.reason, event.to_status) == ("eve", "seen it often", "approved")


def test_a_decision_is_taken_back_from_the_page_that_follows_it(client: ReflexioClient, eve: PageBrowser) -> None:
    first, _ = add(client, PARCEL, INVOICE)
    page = decide(eve, first, "reject")
    assert status(client, first) == "rejected"
    back = eve.send(page.form("/review/undo"))
    assert status(client, first) == "pending"
    assert "The decision was taken back" in back.text
    assert back.response.url.params["playbook"] == str(first)


def test_wording_and_trigger_are_edited_and_approved_at_once(client: ReflexioClient, eve: PageBrowser) -> None:
    (number,) = add(client, PARCEL)
    form = eve.open(f"/review?playbook={number}").form("/review/edit")
    eve.send(form, content="Ask them first.", trigger="a parcel is lost", scope="always", decision="approve")
    playbook = one(client, number)
    assert (playbook.content, playbook.trigger, playbook.scope.value) == (
        "Ask them first.",
        "a parcel is lost",
        "always",
    )
    assert playbook.playbook_status.value == "approved"
    ops = [event.op for event in client.get_review_queue(agent_playbook_id=number).items[0].history]
    assert ops[-2:] == ["edited", "reviewed"]


def test_an_edit_can_be_stored_without_a_decision_and_an_untouched_form_stores_nothing(
    client: ReflexioClient, eve: PageBrowser
) -> None:
    (number,) = add(client, PARCEL)
    path = f"/review?playbook={number}"
    assert "Nothing was changed" in eve.send(eve.open(path).form("/review/edit")).text
    page = eve.send(eve.open(path).form("/review/edit"), content=f"{PARCEL}\r\nAlways.")
    assert "still waits" in page.text
    assert one(client, number).content == f"{PARCEL}\nAlways."
    assert status(client, number) == "pending"


def test_a_decision_about_something_that_changed_meanwhile_is_refused_with_what_changed(
    client: ReflexioClient, eve: PageBrowser
) -> None:
    (number,) = add(client, PARCEL)
    form = eve.open(f"/review?playbook={number}").form("/review/decide")
    client.update_agent_playbook(agent_playbook_id=number, content="Offer a refund at once.", reviewer="bob")
    page = eve.send(form, decision="approve")
    assert page.status == 409
    assert "Your decision was not stored" in page.text
    assert "bob edited it" in page.text
    assert "<del>Ask the neighbours" in page.text
    assert "<ins>Offer a refund at once" in page.text
    assert status(client, number) == "pending"
    assert eve.send(page.form("/review/decide"), decision="approve").status == 200
    assert status(client, number) == "approved"


def test_a_decision_of_somebody_else_is_not_overruled_unseen(client: ReflexioClient, eve: PageBrowser) -> None:
    (number,) = add(client, PARCEL)
    form = eve.open(f"/review?playbook={number}").form("/review/decide")
    client.update_agent_playbook_status(agent_playbook_id=number, playbook_status="rejected", reviewer="bob")
    page = eve.send(form, decision="approve")
    assert (page.status, status(client, number)) == (409, "rejected")


def test_an_edit_that_is_refused_keeps_what_was_typed(client: ReflexioClient, eve: PageBrowser) -> None:
    (number,) = add(client, PARCEL)
    form = eve.open(f"/review?playbook={number}").form("/review/edit")
    client.update_agent_playbook(agent_playbook_id=number, trigger="another one")
    page = eve.send(form, content="My own wording.")
    assert page.status == 409
    assert "My own wording." in dict(page.form("/review/edit").fields)["content"]
    empty = eve.send(eve.open(f"/review?playbook={number}").form("/review/edit"), content="   ")
    assert (empty.status, one(client, number).content) == (422, PARCEL)


def test_several_are_decided_at_once_all_or_none(client: ReflexioClient, eve: PageBrowser) -> None:
    numbers = add(client, PARCEL, INVOICE, DATES)
    ticked = [("playbook", str(number)) for number in numbers[:2]]
    stale = eve.open("/review").form("/review/decide", form_id="bulk")
    client.update_agent_playbook(agent_playbook_id=numbers[1], content="Other words.")
    refused = eve.send(stale, *ticked, decision="approve")
    assert refused.status == 409
    assert [status(client, number) for number in numbers] == ["pending"] * 3
    page = eve.send(eve.open("/review").form("/review/decide", form_id="bulk"), *ticked, decision="approve")
    assert [status(client, number) for number in numbers] == ["approved", "approved", "pending"]
    eve.send(page.form("/review/undo"))
    assert [status(client, number) for number in numbers] == ["pending"] * 3


def test_nothing_ticked_decides_nothing(client: ReflexioClient, eve: PageBrowser) -> None:
    (number,) = add(client, PARCEL)
    page = eve.send(eve.open("/review").form("/review/decide", form_id="bulk"), decision="approve")
    assert (page.status, status(client, number)) == (422, "pending")
    assert "Choose playbooks first" in page.text


def test_what_is_stored_is_never_markup(client: ReflexioClient, eve: PageBrowser) -> None:
    attack = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
    client.add_agent_playbooks([{"content": attack, "trigger": attack, "rationale": attack}])
    page = eve.open("/review")
    assert "<script>alert" not in page.text
    assert "<img src=x" not in page.text
    assert "&lt;script&gt;alert(1)" in page.text


def test_a_key_without_the_scope_sees_the_queue_and_decides_nothing(
    server: Running, org: Org, client: ReflexioClient, eve: PageBrowser
) -> None:
    (number,) = add(client, PARCEL)
    form = eve.open(f"/review?playbook={number}").form("/review/decide")
    with browsing(org, new_key(server.folder, org.id, scopes=frozenset({KeyScope.READ}))) as reader:
        page = reader.open("/review")
        assert PARCEL in page.text
        assert not page.has_form("/review/decide")
        assert not page.has_form("/review/edit")
        form.fields = [*form.fields, ("form_token", dict(page.form("/theme").fields)["form_token"])][::-1]
        assert reader.send(form, decision="approve").status == 403
    assert status(client, number) == "pending"


def test_playbooks_of_another_organisation_are_out_of_reach(
    make_org: Callable[[], Org], client: ReflexioClient, eve: PageBrowser
) -> None:
    (mine,) = add(client, PARCEL)
    other = make_org()
    with other.client() as theirs:
        (number,) = add(theirs, INVOICE)
        eve.open(f"/review?playbook={number}", status=404)
        form = eve.open(f"/review?playbook={mine}").form("/review/decide")
        assert eve.send(form, ("playbook", str(number)), decision="approve").status == 404
        assert INVOICE not in eve.open(f"/review?done={number}").text
        assert (status(theirs, number), status(client, mine)) == ("pending", "pending")


@pytest.mark.parametrize(
    "path", ["/review?cursor=nonsense", "/review?playbook=99999999", f"/review?version={'x' * 2000}&scope=nowhere"]
)
def test_addresses_that_make_no_sense_are_answered_in_words(eve: PageBrowser, path: str) -> None:
    response = eve.client.get(path)
    assert response.status_code < 500
    assert "text/html" in response.headers["content-type"]


@pytest.mark.parametrize(
    "fields",
    [
        {"decision": "delete"},
        {"decision": ""},
        {"decision": "approve", "playbook": "1; drop"},
        {"decision": "approve", "seen": "nonsense"},
        {"decision": "approve", "reason": "x" * 200_000},
    ],
)
def test_forms_that_make_no_sense_change_nothing(
    client: ReflexioClient, eve: PageBrowser, fields: dict[str, str]
) -> None:
    (number,) = add(client, PARCEL)
    form = eve.open(f"/review?playbook={number}").form("/review/decide")
    assert 400 <= eve.send(form, **fields).status < 500
    assert status(client, number) == "pending"


def test_an_empty_queue_says_the_next_step(eve: PageBrowser) -> None:
    assert "Nothing waits for review" in eve.open("/review").text
