"""Conversations of a real server: hostile texts and ids, long sessions, and other organisations."""

from collections.abc import Iterator
from html import unescape

import httpx
import pytest

from tests.builders import new_key
from tests.conftest import Org, Running

HTML = {"Accept": "text/html"}


@pytest.fixture
def pages(org: Org) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=org.url, headers={**HTML, "Authorization": f"Bearer {org.token}"}) as pages:
        yield pages


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7 * 7 }}"


@pytest.mark.parametrize("name", ["..", ".", "a/b", "?x#y", "%2e%2e", HOSTILE, "Ünïcode 名", "a&b=c", " x "])
def test_sessions_and_users_may_have_any_name(org: Org, pages: httpx.Client, name: str) -> None:
    with org.client() as client:
        client.publish_interaction(name.strip(), [{"role": "User", "content": HOSTILE}], session_id=name.strip())
    listed = pages.get("/conversations")
    assert "<script>alert" not in listed.text
    assert "<img src=x" not in listed.text
    path = unescape(listed.text.partition('class="row-title clamp" href="')[2].partition('"')[0])
    shown = pages.get(path)
    assert shown.status_code == 200, path
    assert "<script>alert" not in shown.text
    assert "<img src=x" not in shown.text
    assert "{{ 7 * 7 }}" in shown.text


def test_a_long_session_is_shown_in_parts_and_opened_around_a_turn(org: Org, pages: httpx.Client) -> None:
    with org.client() as client:
        turns = [{"role": "User", "content": f"message {number}."} for number in range(250)]
        client.publish_interaction("ann", turns, session_id="long")
        numbers = sorted(turn.interaction_id for turn in client.get_interactions("ann", top_k=300).interactions)
    first = pages.get("/conversations/session", params={"user": "ann", "id": "long"}).text
    assert "message 99." in first
    assert "message 100." not in first
    assert "Later turns" in first
    around = pages.get(f"/conversations/turn/{numbers[200]}", follow_redirects=True)
    assert "message 180." in around.text
    assert "message 200." in around.text
    assert "message 100." not in around.text
    assert str(around.url).endswith(f"#turn-{numbers[200]}")
    assert "Earlier turns" in around.text


def test_nobody_sees_conversations_of_another_organisation(server: Running, org: Org, pages: httpx.Client) -> None:
    other = new_key(server.folder, f"{org.id}-other")
    with org.client() as client:
        client.publish_interaction("ann", [{"role": "User", "content": "a secret word"}], session_id="s")
        number = client.get_interactions("ann").interactions[0].interaction_id
    assert "a secret word" in pages.get("/conversations").text
    pages.headers["Authorization"] = f"Bearer {other}"
    for path in ("/conversations", "/conversations?q=secret", "/conversations?user=ann"):
        assert "a secret word" not in pages.get(path).text
    assert pages.get("/conversations/session", params={"user": "ann", "id": "s"}).status_code == 404
    assert pages.get(f"/conversations/turn/{number}").status_code == 404


@pytest.mark.parametrize(
    "query", ["from=x&to=y", "cursor=%00", "cursor=abc", "q=%00", "from=9999-99-99", "q=%22%27%3B--"]
)
def test_odd_addresses_are_answered(pages: httpx.Client, query: str) -> None:
    assert pages.get(f"/conversations?{query}").status_code == 200


@pytest.mark.parametrize("path", ["turn/0", "turn/x", "turn/99999999999999999999", "session", "request?id=none"])
def test_what_is_not_there_is_a_404_page(pages: httpx.Client, path: str) -> None:
    answer = pages.get(f"/conversations/{path}")
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
