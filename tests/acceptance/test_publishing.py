"""What is published is stored, once, and can be read and deleted."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from reflexio import AsyncReflexioClient, InteractionData, ToolUsed, UserActionType
from reflexio.client.sync import ReflexioClient
from reflexio.errors import Conflict, InvalidRequest, NotFound
from tests.builders import body, contents, every_turn, name, problem, turns
from tests.conftest import Org, StartServer


def test_everything_about_a_turn_comes_back(client: ReflexioClient) -> None:
    turn = {
        "created_at": 1_700_000_000,
        "role": "Agent",
        "content": "Here it is — 请看 🙂",
        "shadow_content": "Another answer",
        "expert_content": "A better answer",
        "user_action": "click",
        "user_action_description": "opened the invoice",
        "interacted_image_url": "https://example.org/a.png",
        "tools_used": [{"tool_name": "get", "tool_data": {"id": [1, {"deep": None}]}, "status": "ok"}],
        "citations": [{"kind": "playbook", "real_id": "7", "tag": "p1", "title": "Look first"}],
        "retrieved_learnings": [{"kind": "profile", "learning_id": "abc"}],
    }
    client.publish_interaction("ann", [turn])
    found = client.get_interactions("ann").interactions[0].model_dump(mode="json", exclude_none=True)
    assert {key: found[key] for key in turn} == turn


def test_models_and_dicts_are_taken_alike(client: ReflexioClient) -> None:
    model = InteractionData(
        content="as a model",
        user_action=UserActionType.SCROLL,
        user_action_description="down",
        tools_used=[ToolUsed(tool_name="look")],
    )
    client.publish_interaction("ann", [model, {"content": "as a dict"}])
    assert contents(client.get_interactions("ann").interactions) == ["as a dict", "as a model"]


def test_a_session_is_made_when_none_is_given(client: ReflexioClient) -> None:
    first, second = (client.publish_interaction("ann", turns()) for _ in range(2))
    assert first.session_id
    assert first.session_id != second.session_id
    assert client.get_requests(session_id=first.session_id).sessions[0].requests[0].request.user_id == "ann"


def test_requests_are_grouped_by_session_newest_first(client: ReflexioClient) -> None:
    for session, source in (("a", "chat"), ("b", "mail"), ("a", "mail")):
        client.publish_interaction("ann", turns(), session_id=session, source=source)
    found = client.get_requests(user_id="ann")
    assert [(each.session_id, len(each.requests)) for each in found.sessions] == [("a", 2), ("b", 1)]
    assert [len(each.requests) for each in client.get_requests(source="mail").sessions] == [1, 1]


def test_blanks_around_a_name_do_not_count(client: ReflexioClient) -> None:
    client.publish_interaction(" ann ", turns(), session_id=" s ")
    assert len(client.get_interactions("ann ").interactions) == 2
    for user, session in (("ann", "s"), (" ann", "s "), (" ann ", " s ")):
        assert len(client.get_requests(user_id=user, session_id=session).sessions) == 1


def test_a_session_can_be_finished(client: ReflexioClient) -> None:
    client.publish_interaction("ann", turns(), session_id="s")
    assert client.finalize_session("ann", "s").accepted
    assert client.get_requests(session_id="s").sessions[0].requests[0].request.session_finished
    assert not client.finalize_session("ann", "another").accepted
    assert not client.finalize_session("bob", "s").accepted


def test_empty_turns_are_left_out_with_a_warning(client: ReflexioClient) -> None:
    answer = client.publish_interaction("ann", [{"content": ""}, {"content": "here"}])
    assert answer.warnings == ["1 empty interaction(s) were left out"]
    assert contents(client.get_interactions("ann").interactions) == ["here"]


def test_learning_status_follows_a_publish(client: ReflexioClient) -> None:
    learned = client.publish_interaction("ann", turns())
    watched = client.publish_interaction("ann", turns(), evaluation_only=True)
    assert client.get_learning_status(learned.request_id or "") == "pending"
    assert client.get_learning_status(watched.request_id or "") == "not_tracked"
    with pytest.raises(NotFound):
        client.get_learning_status("nobody published this")


def test_storage_stats_count_one_user(client: ReflexioClient) -> None:
    client.publish_interaction("ann", turns())
    client.publish_interaction("bob", turns())
    found = client.storage_stats("ann")
    assert (found.interaction_count, found.request_count, found.profile_count) == (2, 1, 0)


async def test_the_asynchronous_client_does_the_same(org: Org) -> None:
    async with AsyncReflexioClient(org.token, org.url) as client:
        answer = await client.publish_interaction("ann", turns("one"), session_id="s")
        assert contents((await client.get_interactions("ann")).interactions) == ["one"]
        assert (await client.get_requests(session_id="s")).sessions[0].requests[0].request.request_id
        await client.delete_request(answer.request_id or "")
        await client.flush()
        assert (await client.get_all_interactions()).interactions == []
        assert (await client.whoami()).org_id == org.id


# --- time


def test_a_range_of_time_includes_both_ends(client: ReflexioClient) -> None:
    client.publish_interaction("ann", [{"content": str(at), "created_at": at} for at in (99, 100, 101, 102)])
    start, end = datetime.fromtimestamp(100, UTC), datetime.fromtimestamp(101, UTC)
    assert contents(client.get_interactions("ann", start_time=start, end_time=end).interactions) == ["101", "100"]


def test_a_time_without_a_zone_is_the_callers(client: ReflexioClient) -> None:
    client.publish_interaction("ann", [{"content": "x", "created_at": 1_700_000_000}])
    local = datetime.fromtimestamp(1_700_000_000)  # noqa: DTZ006  that is the point
    assert client.get_interactions("ann", start_time=local, end_time=local).interactions
    assert client.get_requests(end_time=datetime(1999, 1, 1)).sessions == []  # noqa: DTZ001


def test_a_time_without_a_zone_is_utc_on_the_wire(client: ReflexioClient, http: httpx.Client) -> None:
    client.publish_interaction("ann", [{"content": "x", "created_at": 0}])
    asked = {"user_id": "ann", "start_time": "1970-01-01T00:00:00", "end_time": "1970-01-01T00:00:00"}
    assert len(http.post("/api/get_interactions", json=asked).json()["interactions"]) == 1


# --- pages


def test_pages_give_every_row_once_and_in_order(client: ReflexioClient) -> None:
    moments = [7, 7, 7, 3, 9, 9, 3, 7, 1, 9, 7]
    client.publish_interaction("ann", [{"content": str(n), "created_at": at} for n, at in enumerate(moments)])
    expected = contents(client.get_interactions("ann", top_k=100).interactions)
    assert expected == [str(n) for n in sorted(range(11), key=lambda n: (-moments[n], -n))]
    for size in (1, 2, 3, 10, 11, 12):
        assert contents(every_turn(client, "ann", top_k=size)) == expected


def test_rows_added_meanwhile_do_not_disturb_the_walk(client: ReflexioClient) -> None:
    client.publish_interaction("ann", [{"content": str(n), "created_at": 50} for n in range(9)])
    seen: list[str] = []
    cursor = None
    while True:
        page = client.get_all_interactions(limit=2, cursor=cursor)
        seen += contents(page.interactions)
        client.publish_interaction("ann", [{"content": "newer", "created_at": 60}])
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [str(n) for n in reversed(range(9))]


def test_requests_page_by_cursor_and_by_offset(client: ReflexioClient) -> None:
    ids = [client.publish_interaction("ann", turns(), session_id=f"s{n}").request_id for n in range(7)]
    newest_first = ids[::-1]

    def of(page: Any) -> list[str]:
        return [each.request.request_id for session in page.sessions for each in session.requests]

    walked: list[str] = []
    page = client.get_requests(top_k=3)
    walked += of(page)
    while page.next_cursor:
        assert page.has_more
        page = client.get_requests(top_k=3, cursor=page.next_cursor)
        walked += of(page)
    assert walked == newest_first
    assert of(client.get_requests(top_k=3, offset=2)) == newest_first[2:5]


def test_calls_with_only_a_limit_work(client: ReflexioClient, http: httpx.Client) -> None:
    client.publish_interaction("ann", [{"content": str(n)} for n in range(40)])
    assert len(http.get("/api/get_all_interactions", params={"limit": 5}).json()["interactions"]) == 5
    assert len(http.post("/api/get_interactions", json={"user_id": "ann", "top_k": 5}).json()["interactions"]) == 5
    assert len(http.post("/api/get_interactions", json={"user_id": "ann"}).json()["interactions"]) == 30
    assert len(http.post("/api/get_interactions", json={"user_id": "ann", "top_k": None}).json()["interactions"]) == 40
    assert len(client.get_interactions("ann", top_k=10**15).interactions) == 40


# --- deleting


def test_deleting_takes_what_was_named(client: ReflexioClient) -> None:
    for session in ("a", "a", "b", "c", "d"):
        client.publish_interaction("ann", turns(f"{session} one", f"{session} two"), session_id=session)
    assert (gone := client.delete_session("a", wait_for_response=True))
    assert gone.deleted_requests_count == 2
    b, c, d = (client.get_requests(session_id=each).sessions[0].requests[0] for each in "bcd")
    client.delete_request(b.request.request_id, wait_for_response=True)
    assert client.delete_requests_by_ids([c.request.request_id, "unknown"]).deleted_count == 1
    client.delete_interaction("ann", d.interactions[0].interaction_id, wait_for_response=True)
    assert contents(client.get_interactions("ann").interactions) == ["d two"]
    assert client.delete_all_interactions().deleted_count == 1
    assert client.get_requests().sessions == []


def test_deleting_what_is_not_there(client: ReflexioClient) -> None:
    client.publish_interaction("ann", turns("keep"))
    turn = client.get_interactions("ann").interactions[0]
    with pytest.raises(NotFound, match="request"):
        client.delete_request("unknown", wait_for_response=True)
    with pytest.raises(NotFound, match="interaction"):
        client.delete_interaction("bob", turn.interaction_id, wait_for_response=True)
    assert (none := client.delete_session("unknown", wait_for_response=True))
    assert none.deleted_requests_count == 0
    assert contents(client.get_interactions("ann").interactions) == ["keep"]


def test_clearing_an_unknown_user_counts_zeros(client: ReflexioClient) -> None:
    counts = client.clear_user_data("nobody").deleted_counts
    assert counts == dict.fromkeys(
        (
            "session_outcomes",
            "interactions",
            "user_playbooks",
            "profiles",
            "requests",
            "purged_profiles",
            "purged_user_playbooks",
        ),
        0,
    )


def test_clearing_a_user_leaves_what_is_similar(client: ReflexioClient) -> None:
    names = ["ann", "ann ", "Ann", "ann%", "an_", "ann\u0301"]
    for each in ("ann", "Ann", "ann%", "an_", "ann\u0301"):
        client.publish_interaction(each, turns())
    assert client.clear_user_data(names[0]).deleted_counts["interactions"] == 2
    for each in names[2:]:
        assert len(client.get_interactions(each).interactions) == 2


# --- idempotency


def test_the_same_key_stores_once_and_gets_the_first_answer(client: ReflexioClient) -> None:
    first = client.publish_interaction("ann", turns(), idempotency_key="k")
    second = client.publish_interaction("ann", turns(), idempotency_key="k")
    assert second == first
    assert len(client.get_interactions("ann").interactions) == 2


def test_the_same_call_a_second_later_is_the_same_call(client: ReflexioClient, monkeypatch: pytest.MonkeyPatch) -> None:
    first = client.publish_interaction("ann", turns(), idempotency_key="k")
    monkeypatch.setattr("reflexio.models.wire.time.time", lambda: 4_000_000_000.0)
    assert client.publish_interaction("ann", turns(), idempotency_key="k") == first


def test_the_same_key_with_another_body_is_a_conflict(client: ReflexioClient) -> None:
    client.publish_interaction("ann", turns("one"), idempotency_key="k")
    with pytest.raises(Conflict, match="'k' was used for another request"):
        client.publish_interaction("ann", turns("two"), idempotency_key="k")
    assert contents(client.get_interactions("ann").interactions) == ["one"]


def test_keys_of_two_organisations_do_not_meet(make_org: Callable[[], Org]) -> None:
    with make_org().client() as one, make_org().client() as other:
        first = one.publish_interaction("ann", turns("one"), idempotency_key="k")
        second = other.publish_interaction("ann", turns("two"), idempotency_key="k")
    assert first.request_id != second.request_id


def test_a_refused_publish_does_not_use_up_its_key(http: httpx.Client) -> None:
    headers = {"Idempotency-Key": "k"}
    http.post("/api/publish_interaction", json=body(request_id="taken")).raise_for_status()
    again = http.post("/api/publish_interaction", json=body(request_id="taken"), headers=headers)
    assert "'taken' is taken" in problem(again, 409)
    assert http.post("/api/publish_interaction", json=body(), headers=headers).is_success


def test_the_same_key_at_the_same_time_stores_once(org: Org) -> None:
    start = threading.Barrier(8)

    def publish(_: int) -> str | None:
        with org.client() as client:
            start.wait()
            return client.publish_interaction("ann", turns(), idempotency_key="k").request_id

    with ThreadPoolExecutor(8) as threads:
        ids = set(threads.map(publish, range(8)))
    with org.client() as client:
        assert len(ids) == 1
        assert len(client.get_interactions("ann").interactions) == 2


def test_the_same_key_after_a_restart_stores_once(start_server: StartServer) -> None:
    server = start_server()
    with ReflexioClient(url_endpoint=server.url) as client:
        first = client.publish_interaction("ann", turns(), idempotency_key="k")
        server.stop()
        server.start()
        assert client.publish_interaction("ann", turns(), idempotency_key="k") == first
        assert len(client.get_interactions("ann").interactions) == 2


def test_a_retry_after_a_lost_answer_stores_once(org: Org) -> None:
    class LosesTheFirstAnswer(httpx.HTTPTransport):
        lost = 0

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = super().handle_request(request)
            if request.method == "POST" and not self.lost:
                self.lost += 1
                answer.read()
                raise httpx.ReadError("the answer got lost", request=request)
            return answer

    transport = LosesTheFirstAnswer()
    with ReflexioClient(org.token, org.url, transport=transport) as client:
        answer = client.publish_interaction("ann", turns())
        assert transport.lost == 1
        assert answer.success
        assert len(client.get_interactions("ann").interactions) == 2


# --- limits


def test_a_thousand_turns_at_once(client: ReflexioClient) -> None:
    client.publish_interaction("ann", [{"content": str(n), "created_at": 5} for n in range(1000)])
    assert contents(every_turn(client, "ann")) == [str(n) for n in reversed(range(1000))]


def test_a_thousand_and_one_are_too_many(http: httpx.Client) -> None:
    sent = body(interaction_data_list=[{"content": "x"}] * 1001)
    assert "1000" in problem(http.post("/api/publish_interaction", json=sent), 422)


def test_the_client_says_what_is_wrong_before_it_sends(client: ReflexioClient) -> None:
    with pytest.raises(InvalidRequest, match="user_action needs a user_action_description"):
        client.publish_interaction(name(), [{"user_action": "click"}])
    with pytest.raises(InvalidRequest, match="interaction_data_list"):
        client.publish_interaction(name(), [])
