"""Learnings in the pages of a real server: add, edit, archive, decide, undo, delete, and what a key may not do."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from reflexio.models.access import ALL_SCOPES, KeyScope
from tests.builders import new_key
from tests.conftest import Org, Running

HTML = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'{{ 7 * 7 }}"
SignIn = Callable[..., httpx.Client]


@pytest.fixture
def sign_in(server: Running, org: Org) -> Iterator[SignIn]:
    """Signs in with a key of some scopes; gives a browser without scripts."""
    browsers: list[httpx.Client] = []

    def start(*scopes: KeyScope, owner: str = "Rita") -> httpx.Client:
        token = new_key(server.folder, org.id, scopes=frozenset(scopes) or ALL_SCOPES, owner=owner)
        browsers.append(httpx.Client(base_url=server.url, headers=HTML, follow_redirects=True))
        assert browsers[-1].post("/sign-in", data={"key": token}).status_code == 200
        return browsers[-1]

    yield start
    for browser in browsers:
        browser.close()


def hidden(page: httpx.Response, name: str) -> str:
    return page.text.partition(f'name="{name}" value="')[2].partition('"')[0]


def send(browser: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Sends a form of a page, with the token that the page has."""
    token = hidden(browser.get("/"), "form_token")
    return browser.post(path, data={"form_token": token, **fields})


def add(browser: httpx.Client, kind: str, **fields: str) -> str:
    """Adds a learning and gives the path of its page."""
    answer = send(browser, "/learnings/new", kind=kind, **fields)
    assert answer.status_code == 200
    return answer.url.path


@pytest.mark.parametrize("kind", ["profile", "user_playbook", "agent_playbook"])
def test_a_learning_is_added_edited_archived_used_again_and_deleted(sign_in: SignIn, kind: str) -> None:
    browser = sign_in()
    path = add(browser, kind, user="ann" if kind != "agent_playbook" else "", content="Answer in German")
    assert "Answer in German" in browser.get(f"/learnings?kind={kind}").text
    state = hidden(browser.get(f"{path}/edit"), "state")
    edited = send(browser, f"{path}/edit", state=state, content="Answer in French", reason="They moved")
    assert "Saved." in edited.text
    assert "<del>German</del><ins>French</ins>" in edited.text
    assert "Rita" in edited.text
    assert "Archived." in send(browser, f"{path}/archive").text
    assert "Answer in French" not in browser.get(f"/learnings?kind={kind}").text
    assert "Answer in French" in browser.get(f"/learnings?kind={kind}&status=archived").text
    assert send(browser, f"{path}/archive").status_code == 409
    assert "in use again" in send(browser, f"{path}/restore").text
    assert "Deleted." in send(browser, f"{path}/delete").text
    assert browser.get(path).status_code == 404


def test_who_decided_what_and_why_is_shown_and_can_be_taken_back(sign_in: SignIn) -> None:
    browser = sign_in()
    path = add(browser, "agent_playbook", content="Offer two slots", version="shop-1")
    state = hidden(browser.get(path), "state")
    approved = send(browser, f"{path}/decide", state=state, status="approved", reason="Costs nothing")
    assert "Approved. It reaches prompts" in approved.text
    assert "Costs nothing" in approved.text
    stale = send(browser, f"{path}/decide", state=state, status="rejected")
    assert stale.status_code == 409
    assert "Rita set it to approved" in stale.text
    undone = send(browser, f"{path}/undo", state=hidden(approved, "state"), reason="Too early")
    assert "taken back" in undone.text
    assert "Too early" in undone.text
    assert "waits for review" in undone.text


def test_an_edit_of_what_has_changed_meanwhile_keeps_what_was_typed(sign_in: SignIn) -> None:
    browser = sign_in()
    path = add(browser, "user_playbook", user="ann", content="one")
    state = hidden(browser.get(f"{path}/edit"), "state")
    send(browser, f"{path}/edit", state=state, content="two")
    late = send(browser, f"{path}/edit", state=state, content="my own words")
    assert late.status_code == 409
    assert "my own words" in late.text
    assert "my own words" not in browser.get(path).text


def test_what_is_wrong_is_said_and_what_was_typed_is_kept(sign_in: SignIn) -> None:
    browser = sign_in()
    answer = send(browser, "/learnings/new", kind="profile", user="", content="likes tea")
    assert answer.status_code == 422
    assert "The user:" in answer.text
    assert "likes tea" in answer.text
    assert send(browser, "/learnings/new", kind="nothing", content="x").status_code == 422
    assert send(browser, "/learnings/new", kind="user_playbook", content=" ").status_code == 422


def test_only_changed_fields_are_edits(sign_in: SignIn) -> None:
    browser = sign_in()
    path = add(browser, "user_playbook", user="ann", content="line one\r\nline two", trigger="t")
    state = hidden(browser.get(f"{path}/edit"), "state")
    same = send(browser, f"{path}/edit", state=state, content="line one\r\nline two", trigger="t")
    assert same.text.count('class="version"') == 1


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        ((KeyScope.READ,), {}),
        ((KeyScope.READ, KeyScope.PUBLISH), {"edit"}),
        ((KeyScope.READ, KeyScope.REVIEW), {"archive", "delete"}),
    ],
)
def test_a_key_does_only_what_its_scopes_permit(
    sign_in: SignIn, scopes: tuple[KeyScope, ...], allowed: set[str]
) -> None:
    path = add(sign_in(), "user_playbook", user="ann", content="Ask first")
    browser = sign_in(*scopes)
    page = browser.get(path).text
    assert ("/edit" in page) == ("edit" in allowed)
    assert ("/delete" in page) == ("delete" in allowed)
    state = hidden(browser.get(f"{path}/edit"), "state") if "edit" in allowed else ""
    for action in ("edit", "archive", "delete"):
        answer = send(browser, f"{path}/{action}", content="x", state=state)
        assert (answer.status_code == 403) == (action not in allowed), action


def test_a_key_that_may_not_read_sees_no_learning(sign_in: SignIn) -> None:
    path = add(sign_in(), "user_playbook", user="ann", content="Ask for the secret word")
    browser = sign_in(KeyScope.PUBLISH, KeyScope.REVIEW)
    for target in ("/learnings", path, f"{path}/edit", "/learnings/new"):
        answer = browser.get(target)
        assert answer.status_code == 403, target
        assert "secret" not in answer.text
    assert "secret" not in send(browser, f"{path}/edit", content="x", state="").text


def test_nobody_sees_or_changes_learnings_of_another_organisation(server: Running, sign_in: SignIn, org: Org) -> None:
    path = add(sign_in(), "user_playbook", user="ann", content="Ask for the secret word")
    token = new_key(server.folder, f"{org.id}-other")
    with httpx.Client(base_url=server.url, headers=HTML, follow_redirects=True) as other:
        other.post("/sign-in", data={"key": token})
        assert other.get(path).status_code == 404
        for action in ("edit", "archive", "restore", "delete", "decide", "undo"):
            assert send(other, f"{path}/{action}", content="x", status="approved").status_code == 404
        assert "secret word" not in other.get("/learnings?kind=user_playbook&q=secret").text


def test_what_people_write_is_shown_as_text(sign_in: SignIn) -> None:
    browser = sign_in(owner="<b>Rita</b>")
    path = add(browser, "agent_playbook", content=HOSTILE, trigger=HOSTILE, rationale=HOSTILE, version=HOSTILE)
    state = hidden(browser.get(path), "state")
    send(browser, f"{path}/decide", state=state, status="approved", reason=HOSTILE)
    for page in (path, "/learnings", f"{path}/edit", "/learnings?q=alert"):
        text = browser.get(page).text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "<b>Rita" not in text
        assert "{{ 7 * 7 }}" in text


def test_the_count_of_prompts_leads_to_the_conversations(sign_in: SignIn, org: Org) -> None:
    browser = sign_in()
    path = add(browser, "agent_playbook", content="Offer two slots")
    shown = [{"kind": "agent_playbook", "learning_id": path.rpartition("/")[2]}]
    turn = {"role": "Agent", "content": "Ten or twelve?", "retrieved_learnings": shown}
    with org.client() as client:
        client.publish_interaction("ann", [turn, {**turn, "content": "Or at noon?"}], session_id="s")
    from tests.builders import eventually

    eventually(lambda: "2 times" in browser.get(path).text)
    page = browser.get(path).text
    assert "Or at noon?" in page
    assert "/conversations/turn/" in page


@pytest.mark.parametrize("path", ["0", "x", "-1", "99999999999999999999", "1/edit", "playbook"])
def test_learnings_that_are_not_there_are_404_pages(sign_in: SignIn, path: str) -> None:
    assert sign_in().get(f"/learnings/{path}").status_code == 404


def test_playbooks_are_found_by_kind_and_public_id(sign_in: SignIn, org: Org) -> None:
    browser = sign_in()
    with org.client() as client:
        client.add_user_profile([{"user_id": "ann", "content": "likes tea", "profile_id": "a/b c"}])
        number = client.add_agent_playbooks([{"content": "Ask"}]).ids[0]
    assert "likes tea" in browser.get("/playbooks/profile/a%2Fb%20c").text
    assert browser.get(f"/playbooks/agent_playbook/{number}").url.path == f"/learnings/{number}"
    assert browser.get("/playbooks/agent_playbook/x").status_code == 404
    assert browser.get("/playbooks/nothing/1").status_code == 404


def test_the_lists_of_a_user_lead_to_each_other(sign_in: SignIn) -> None:
    browser = sign_in()
    add(browser, "profile", user="ann", content="likes tea")
    add(browser, "profile", user="bob", content="likes coffee")
    page = browser.get("/learnings?kind=user_playbook&user=ann").text
    assert "/learnings?kind=profile&amp;user=ann" in page
    profiles = browser.get("/learnings?kind=profile&user=ann").text
    assert "likes tea" in profiles
    assert "likes coffee" not in profiles
