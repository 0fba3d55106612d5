"""Profiles, user playbooks and agent playbooks by hand: add, list, change, review, delete."""

import time
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.errors import Conflict, InvalidRequest, NotFound
from reflexio.models.learning import Kind, PlaybookStatus, Status
from reflexio.models.paging import Page
from reflexio.ports.storage import LearningFilter, LineageEvent
from tests.builders import on_database, problem
from tests.conftest import Org, Running

NEVER = 4_102_444_800
PROFILE: dict[str, Any] = {
    "profile_id": "p-1",
    "user_id": "ann",
    "content": "Vegetarian",
    "last_modified_timestamp": 1_790_000_000,
    "generated_from_request_id": "r-1",
    "profile_time_to_live": "one_year",
    "expiration_timestamp": 4_000_000_000,
    "custom_features": {"diet": ["no meat", 1, None, {"since": 2.5}]},
    "source": "chat",
    "status": "pending",
    "extractor_names": ["facts"],
    "tags": ["food", "Küche mit Herd"],
    "source_interaction_ids": [1, 2],
    "source_span": "I eat no meat",
    "notes": "said twice",
    "scope": "when_relevant",
}
USER_PLAYBOOK: dict[str, Any] = {
    "user_id": "ann",
    "agent_version": "v2",
    "request_id": "r-1",
    "playbook_name": "refunds",
    "created_at": 1_790_000_000,
    "content": "Check the date first",
    "trigger": "a refund is asked for",
    "rationale": "Late refunds are refused",
    "blocking_issue": {"kind": "missing_tool", "details": "no refund tool"},
    "metadata": {"quality_score": 4, "issues": ["slow"]},
    "status": "archived",
    "source": "chat",
    "source_interaction_ids": [3, 4],
    "source_span": "first the date",
    "tags": ["money"],
    "scope": "always",
}
AGENT_PLAYBOOK: dict[str, Any] = {
    "agent_version": "v2",
    "playbook_name": "refunds",
    "created_at": 1_790_000_000,
    "content": "Check the date first",
    "trigger": "a refund is asked for",
    "rationale": "Late refunds are refused",
    "blocking_issue": {"kind": "policy_restriction", "details": "30 days"},
    "playbook_status": "approved",
    "playbook_metadata": "seen 12 times",
    "source_windows": [{"user_playbook_id": 7, "source_interaction_ids": [1, 2]}],
    "source": "chat",
    "status": "pending",
    "tags": ["money"],
    "scope": "always",
}


def user_playbook(content: str = "c", **changes: Any) -> dict[str, Any]:
    return {"user_id": "ann", "content": content, **changes}


def agent_playbook(content: str = "c", **changes: Any) -> dict[str, Any]:
    return {"content": content, **changes}


def profile(content: str = "c", **changes: Any) -> dict[str, Any]:
    return {"user_id": "ann", "content": content, **changes}


def said(rows: list[Any]) -> list[str]:
    return [row.content for row in rows]


# --- what goes in comes out


def test_a_profile_comes_back_with_every_field(client: ReflexioClient) -> None:
    assert client.add_user_profile([PROFILE]).ids == ["p-1"]
    (found,) = client.get_profiles("ann", status_filter=["pending"]).user_profiles
    assert found.model_dump(mode="json") == PROFILE


def test_a_user_playbook_comes_back_with_every_field(client: ReflexioClient) -> None:
    (made,) = client.add_user_playbook([USER_PLAYBOOK]).ids
    (found,) = client.get_user_playbooks(status_filter=["archived"]).user_playbooks
    assert found.model_dump(mode="json") == {"user_playbook_id": int(made), **USER_PLAYBOOK, "outcomes": None}


def test_an_agent_playbook_comes_back_with_every_field(client: ReflexioClient) -> None:
    (made,) = client.add_agent_playbooks([AGENT_PLAYBOOK]).ids
    (found,) = client.get_agent_playbooks(status_filter=["pending"]).agent_playbooks
    counted: dict[str, Any] = {"support": None, "replaces": [], "outcomes": None}
    assert found.model_dump(mode="json") == {"agent_playbook_id": int(made), **AGENT_PLAYBOOK, **counted}


def test_what_is_left_out_takes_the_defaults(client: ReflexioClient) -> None:
    before = int(time.time())
    client.add_user_profile([profile()])
    client.add_user_playbook([{"content": "of nobody"}])
    client.add_agent_playbooks([agent_playbook()])
    (fact,) = client.get_profiles("ann").user_profiles
    assert (fact.status, fact.expiration_timestamp, fact.source, fact.tags) == (Status.CURRENT, NEVER, None, [])
    assert before <= fact.last_modified_timestamp <= before + 60
    (taught,) = client.get_user_playbooks().user_playbooks
    assert (taught.user_id, taught.trigger, taught.metadata, taught.playbook_name) == (None, None, {}, "playbook")
    (shared,) = client.get_agent_playbooks().agent_playbooks
    assert (shared.playbook_status, shared.source_windows) == (PlaybookStatus.PENDING, [])


def test_a_time_to_live_becomes_an_expiry(client: ReflexioClient) -> None:
    now = int(time.time())
    client.add_user_profile([profile(profile_time_to_live="one_week")])
    (found,) = client.get_profiles("ann").user_profiles
    assert now + 7 * 86_400 <= found.expiration_timestamp <= now + 7 * 86_400 + 60


@pytest.mark.parametrize("tags", [["", "a"], ["a", ""], [""], [" "]])
def test_an_empty_tag_is_refused(http: httpx.Client, tags: list[str]) -> None:
    problem(http.post("/api/add_user_playbook", json={"user_playbooks": [user_playbook(tags=tags)]}), 422)


def test_metadata_may_be_an_object(client: ReflexioClient) -> None:
    client.add_agent_playbooks([agent_playbook(playbook_metadata={"support": 3})])
    assert client.get_agent_playbooks().agent_playbooks[0].playbook_metadata == '{"support": 3}'


# --- which rows a list holds


@pytest.mark.parametrize("current", [None, "None", "current", Status.CURRENT])
def test_every_word_for_current_means_the_same(client: ReflexioClient, http: httpx.Client, current: Any) -> None:
    for status in (None, "pending", "archived"):
        client.add_user_profile([profile(f"profile {status}", status=status)])
        client.add_user_playbook([user_playbook(f"user {status}", status=status)])
        client.add_agent_playbooks([agent_playbook(f"agent {status}", status=status, playbook_status="approved")])
    assert said(client.get_profiles("ann", status_filter=[current]).user_profiles) == ["profile None"]
    assert said(client.get_user_playbooks(status_filter=[current]).user_playbooks) == ["user None"]
    assert said(client.get_agent_playbooks(status_filter=[current]).agent_playbooks) == ["agent None"]
    assert said(client.search_user_playbooks("user", status_filter=[current]).user_playbooks) == ["user None"]
    assert said(client.search_agent_playbooks("agent", status_filter=[current]).agent_playbooks) == ["agent None"]
    assert said(client.get_all_profiles(status_filter=current).user_profiles) == ["profile None"]
    raw = http.post("/api/get_user_playbooks", json={"status_filter": [current]}).json()["user_playbooks"]
    assert [each["content"] for each in raw] == ["user None"]


def test_without_a_filter_only_current_rows_are_listed(client: ReflexioClient) -> None:
    for status in Status:
        client.add_user_profile([profile(status.value, status=status)])
        client.add_user_playbook([user_playbook(status.value, status=status)])
        client.add_agent_playbooks([agent_playbook(status.value, status=status)])
    assert said(client.get_profiles("ann").user_profiles) == ["current"]
    assert said(client.get_all_profiles().user_profiles) == ["current"]
    assert said(client.get_user_playbooks().user_playbooks) == ["current"]
    assert said(client.get_agent_playbooks().agent_playbooks) == ["current"]
    two = client.get_user_playbooks(status_filter=[Status.MERGED, Status.EXPIRED]).user_playbooks
    assert said(two) == ["expired", "merged"]


def test_an_empty_filter_is_no_filter(client: ReflexioClient) -> None:
    client.add_user_playbook([user_playbook("Tea"), user_playbook("Tea before", status="archived")])
    statuses = {"approved": "Tea for all", "rejected": "Tea for none"}
    client.add_agent_playbooks([agent_playbook(text, playbook_status=status) for status, text in statuses.items()])
    assert said(client.get_user_playbooks(status_filter=[]).user_playbooks) == ["Tea"]
    assert said(client.search_user_playbooks("tea", status_filter=[]).user_playbooks) == ["Tea"]
    assert len(client.get_agent_playbooks(status_filter=[], playbook_status_filter=[]).agent_playbooks) == 2
    found = client.search_agent_playbooks("tea", status_filter=[], playbook_status_filter=[])
    assert said(found.agent_playbooks) == ["Tea for all"]
    everything = client.search("tea", user_id="ann", entity_types=[], agent_playbook_status_filter=[])
    assert (said(everything.user_playbooks), said(everything.agent_playbooks)) == (["Tea"], ["Tea for all"])


def test_an_expired_profile_cannot_be_changed(client: ReflexioClient) -> None:
    (made,) = client.add_user_profile([profile("quince jam", expiration_timestamp=int(time.time()) - 1)]).ids
    with pytest.raises(NotFound, match=made):
        client.update_user_profile("ann", made, content="plum jam")
    client.delete_profile("ann", made, wait_for_response=True)


def test_pending_agent_playbooks_include_those_that_wait_for_review(client: ReflexioClient) -> None:
    client.add_agent_playbooks(
        [
            agent_playbook("waits for review"),
            agent_playbook("approved", playbook_status="approved"),
            agent_playbook("rejected", playbook_status="rejected"),
            agent_playbook("of a rerun", status="pending", playbook_status="approved"),
            agent_playbook("archived", status="archived"),
        ]
    )
    found = client.get_agent_playbooks(status_filter=[Status.PENDING], limit=50).agent_playbooks
    assert said(found) == ["of a rerun", "waits for review"]
    both = client.get_agent_playbooks(status_filter=[Status.PENDING, Status.CURRENT]).agent_playbooks
    assert said(both) == ["of a rerun", "rejected", "approved", "waits for review"]
    reviewed = client.get_agent_playbooks(playbook_status_filter=["approved", "rejected"]).agent_playbooks
    assert said(reviewed) == ["rejected", "approved"]
    assert said(client.get_agent_playbooks(playbook_status_filter="rejected").agent_playbooks) == ["rejected"]


def test_playbooks_are_filtered_by_everything(client: ReflexioClient) -> None:
    rows: list[tuple[str, dict[str, Any]]] = [
        ("one", {"user_id": "ann", "agent_version": "v1", "playbook_name": "a", "request_id": "r1", "created_at": 10}),
        ("two", {"user_id": "bob", "agent_version": "v2", "playbook_name": "a", "request_id": "r2", "created_at": 20}),
        (
            "100%_three",
            {"user_id": "ann", "agent_version": "v2", "playbook_name": "b", "tags": ["x", "y"], "created_at": 30},
        ),
    ]
    ids = client.add_user_playbook([user_playbook(content, **more) for content, more in rows]).ids

    def found(**asked: Any) -> list[str]:
        return said(client.get_user_playbooks(**asked).user_playbooks)

    assert found(user_id="ann") == ["100%_three", "one"]
    assert found(agent_version="v2") == ["100%_three", "two"]
    assert found(playbook_name="a") == ["two", "one"]
    assert found(request_id="r2") == ["two"]
    assert found(user_playbook_id=int(ids[0])) == ["one"]
    assert found(tags=["y"]) == ["100%_three"]
    assert found(tags=["x", "y"]) == ["100%_three"]
    assert found(tags=["x", "z"]) == []
    assert found(query="0%_") == ["100%_three"]
    assert found(query="%") == ["100%_three"]
    assert found(start_time=datetime.fromtimestamp(20, UTC)) == ["100%_three", "two"]
    assert found(start_time=datetime.fromtimestamp(11, UTC), end_time=datetime.fromtimestamp(20, UTC)) == ["two"]
    assert found(agent_version="v2", playbook_name="a") == ["two"]
    assert found(limit=1) == ["100%_three"]


def test_profiles_are_filtered_by_everything(client: ReflexioClient) -> None:
    rows: list[tuple[str, dict[str, Any]]] = [
        ("Likes tea", {"last_modified_timestamp": 10, "source": "chat"}),
        ("Likes jam", {"last_modified_timestamp": 20, "profile_time_to_live": "one_year", "tags": ["food"]}),
        ("Of bob", {"user_id": "bob"}),
    ]
    ids = client.add_user_profile([profile(content, **more) for content, more in rows]).ids

    def found(user_id: str = "ann", **asked: Any) -> list[str]:
        return said(client.get_profiles(user_id, **asked).user_profiles)

    assert found() == ["Likes jam", "Likes tea"]
    assert found("bob") == ["Of bob"]
    assert found(source="chat") == ["Likes tea"]
    assert found(query="JAM") == ["Likes jam"]
    assert found(tags=["food"]) == ["Likes jam"]
    assert found(profile_time_to_live="one_year") == ["Likes jam"]
    assert found(profile_id=ids[0]) == ["Likes tea"]
    assert found("bob", profile_id=ids[0]) == []
    assert found(end_time=datetime.fromtimestamp(15, UTC)) == ["Likes tea"]


def test_a_tag_is_matched_whole(client: ReflexioClient) -> None:
    client.add_user_playbook([user_playbook("long", tags=["refunds", "a%b"]), user_playbook("short", tags=["refund"])])
    assert said(client.get_user_playbooks(tags=["refund"]).user_playbooks) == ["short"]
    assert said(client.get_user_playbooks(tags=["a%"]).user_playbooks) == []
    assert said(client.get_user_playbooks(tags=["a%b"]).user_playbooks) == ["long"]


def test_pages_hold_every_row_once(client: ReflexioClient) -> None:
    client.add_user_playbook([user_playbook(str(n), created_at=5) for n in range(25)])
    seen: list[str] = []
    cursor = None
    while True:
        page = client.get_user_playbooks(limit=7, cursor=cursor)
        seen += said(page.user_playbooks)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [str(n) for n in reversed(range(25))]


# --- many at once


def test_a_thousand_at_once_and_not_one_more(client: ReflexioClient, http: httpx.Client) -> None:
    started = time.monotonic()
    done = client.add_user_playbook([user_playbook(f"number {n}") for n in range(1000)])
    assert time.monotonic() - started < 5
    assert (done.added_count, len(set(done.ids))) == (1000, 1000)
    assert len(client.get_user_playbooks(limit=2000).user_playbooks) == 1000
    found = client.search_user_playbooks("number 998", user_id="ann", search_mode="fts", top_k=1).user_playbooks
    assert said(found) == ["number 998"]
    problem(http.post("/api/add_user_playbook", json={"user_playbooks": [user_playbook()] * 1001}), 422)
    assert client.delete_user_playbooks_by_ids([int(each) for each in done.ids[:999]]).deleted_count == 999
    assert said(client.get_user_playbooks().user_playbooks) == ["number 999"]


def test_one_bad_row_among_many_stores_none(client: ReflexioClient, http: httpx.Client) -> None:
    rows = [user_playbook("fine"), user_playbook("")]
    assert "user_playbooks.1.content" in problem(
        http.post("/api/add_user_playbook", json={"user_playbooks": rows}), 422
    )
    assert client.get_user_playbooks().user_playbooks == []


def test_a_taken_profile_id_is_a_conflict_and_stores_nothing(client: ReflexioClient) -> None:
    client.add_user_profile([profile("first", profile_id="p")])
    with pytest.raises(Conflict, match="'p'"):
        client.add_user_profile([profile("new"), profile("again", profile_id="p")])
    with pytest.raises(Conflict, match="'q'"):
        client.add_user_profile([profile(profile_id="q"), profile(profile_id="q")])
    assert said(client.get_profiles("ann", force_refresh=True).user_profiles) == ["first"]


# --- changing


def test_a_change_keeps_what_it_does_not_name(client: ReflexioClient) -> None:
    (made,) = client.add_user_playbook([{**USER_PLAYBOOK, "status": None}]).ids
    client.update_user_playbook(int(made), content="Ask for the receipt", trigger="")
    (found,) = client.get_user_playbooks().user_playbooks
    expected = {**USER_PLAYBOOK, "status": None, "content": "Ask for the receipt", "trigger": None, "outcomes": None}
    assert found.model_dump(mode="json") == {"user_playbook_id": int(made), **expected}
    assert client.search_user_playbooks("date", user_id="ann", search_mode="fts").user_playbooks == []
    assert len(client.search_user_playbooks("receipt", user_id="ann", search_mode="fts").user_playbooks) == 1


def test_a_profile_is_changed_by_its_own_user_only(client: ReflexioClient) -> None:
    (made,) = client.add_user_profile([profile("Likes tea", custom_features={"a": 1})]).ids
    with pytest.raises(NotFound, match=made):
        client.update_user_profile("bob", made, content="Likes gin")
    client.update_user_profile("ann", made, content="Likes jam")
    (found,) = client.get_profiles("ann").user_profiles
    assert (found.content, found.custom_features) == ("Likes jam", {"a": 1})
    client.update_user_profile("ann", made, custom_features={"b": 2})
    (found,) = client.get_profiles("ann").user_profiles
    assert (found.content, found.custom_features) == ("Likes jam", {"b": 2})


def lineage(server: Running, org: Org, learning_id: int) -> list[LineageEvent]:
    return on_database(server.folder, lambda db: db.of(org.id).read(lambda tx: tx.learnings.lineage(learning_id)))


def test_a_decision_keeps_who_when_and_why(client: ReflexioClient, server: Running, org: Org) -> None:
    before = int(time.time())
    made = int(client.add_agent_playbooks([agent_playbook()]).ids[0])
    client.update_agent_playbook_status(made, playbook_status="approved", reviewer="eve", reason="true everywhere")
    client.update_agent_playbook(made, content="d", playbook_status="rejected", reviewer="zoe", reason="out of date")
    client.update_agent_playbook_status(made, playbook_status=PlaybookStatus.PENDING)
    kept = lineage(server, org, made)
    assert [(each.op, each.actor, each.reason, each.from_status, each.to_status) for each in kept] == [
        ("reviewed", "eve", "true everywhere", "pending", "approved"),
        ("edited", "zoe", "out of date", "", ""),
        ("reviewed", "zoe", "out of date", "approved", "rejected"),
        ("reviewed", "", "", "rejected", "pending"),
    ]
    assert all(before <= each.at <= before + 60 and each.kind is Kind.AGENT_PLAYBOOK for each in kept)
    (found,) = client.get_agent_playbooks().agent_playbooks
    assert (found.content, found.playbook_status) == ("d", PlaybookStatus.PENDING)


def test_a_change_that_changes_nothing_leaves_no_trace(client: ReflexioClient, server: Running, org: Org) -> None:
    made = int(client.add_user_playbook([user_playbook()]).ids[0])
    client.update_user_playbook(made)
    assert lineage(server, org, made) == []
    client.update_user_playbook(made, content="d")
    assert [each.op for each in lineage(server, org, made)] == ["edited"]


@pytest.mark.parametrize("kind", ["user", "agent"])
def test_the_other_kind_of_playbook_is_not_touched_by_its_number(client: ReflexioClient, kind: str) -> None:
    of_user = int(client.add_user_playbook([user_playbook("user's")]).ids[0])
    of_agent = int(client.add_agent_playbooks([agent_playbook("agent's")]).ids[0])
    calls: dict[str, tuple[Any, Any, int]] = {
        "user": (lambda: client.update_user_playbook(of_agent, content="x"), client.delete_user_playbook, of_agent),
        "agent": (lambda: client.update_agent_playbook(of_user, content="x"), client.delete_agent_playbook, of_user),
    }
    change, delete, number = calls[kind]
    with pytest.raises(NotFound):
        change()
    with pytest.raises(NotFound):
        delete(number, wait_for_response=True)
    assert said(client.get_user_playbooks().user_playbooks) == ["user's"]
    assert said(client.get_agent_playbooks().agent_playbooks) == ["agent's"]


def test_unknown_ids_are_not_found(client: ReflexioClient, http: httpx.Client) -> None:
    for call in (
        lambda: client.update_user_playbook(999_999_999, content="x"),
        lambda: client.update_agent_playbook(999_999_999, content="x"),
        lambda: client.update_agent_playbook_status(999_999_999, playbook_status="approved"),
        lambda: client.update_user_profile("ann", "nobody", content="x"),
        lambda: client.delete_user_playbook(999_999_999, wait_for_response=True),
        lambda: client.delete_agent_playbook(999_999_999, wait_for_response=True),
        lambda: client.delete_profile("ann", "nobody", wait_for_response=True),
    ):
        with pytest.raises(NotFound):
            call()
    assert client.get_user_playbooks(user_playbook_id=999_999_999).user_playbooks == []
    assert client.delete_user_playbooks_by_ids([999_999_999]).deleted_count == 0
    assert client.delete_agent_playbooks_by_ids([999_999_999]).deleted_count == 0
    assert client.delete_profiles_by_ids(["nobody"]).deleted_count == 0
    problem(http.request("DELETE", "/api/delete_user_playbook", json={"user_playbook_id": 0}), 422)


# --- deleting


def everywhere(client: ReflexioClient, word: str) -> int:
    """In how many places a word is found: lists, searches, context."""
    places: list[Any] = [
        *client.get_profiles("ann").user_profiles,
        *client.get_all_profiles().user_profiles,
        *client.get_user_playbooks().user_playbooks,
        *client.get_agent_playbooks().agent_playbooks,
    ]
    for mode in ("fts", "hybrid", "vector"):
        found = client.search(word, user_id="ann", search_mode=mode)
        places += [*found.profiles, *found.user_playbooks, *found.agent_playbooks]
    return sum(word in each.content for each in places) + (word in client.get_context(word, user_id="ann").context)


def test_what_is_deleted_is_gone_everywhere_at_once(client: ReflexioClient) -> None:
    fact = client.add_user_profile([profile("quince jam")]).ids[0]
    taught = int(client.add_user_playbook([user_playbook("quince pie")]).ids[0])
    shared = int(client.add_agent_playbooks([agent_playbook("quince tart", playbook_status="approved")]).ids[0])
    assert everywhere(client, "quince") >= 4 + 6
    client.delete_profile("ann", fact, wait_for_response=True)
    client.delete_user_playbook(taught, wait_for_response=True)
    client.delete_agent_playbook(shared, wait_for_response=True)
    assert everywhere(client, "quince") == 0


def test_what_expires_is_gone_everywhere_at_once(client: ReflexioClient) -> None:
    soon = int(time.time()) + 3
    client.add_user_profile([profile("quince jam", expiration_timestamp=soon), profile("plum jam")])
    assert said(client.get_profiles("ann").user_profiles) == ["plum jam", "quince jam"]
    time.sleep(max(0.0, soon + 0.1 - time.time()))
    assert said(client.get_profiles("ann").user_profiles) == ["plum jam"]
    assert everywhere(client, "quince") == 0
    assert client.storage_stats("ann").profile_count == 1


def test_all_of_a_kind_are_deleted_with_true_counts(client: ReflexioClient) -> None:
    def fill() -> None:
        for status in (None, "pending", "archived"):
            client.add_user_profile([profile(status=status), profile(user_id="bob", status=status)])
            client.add_user_playbook([user_playbook(status=status)])
            client.add_agent_playbooks([agent_playbook(status=status)])

    fill()
    assert client.delete_all_profiles().deleted_count == 6
    assert client.delete_all_user_playbooks().deleted_count == 3
    assert client.delete_all_agent_playbooks().deleted_count == 3
    fill()
    assert client.delete_all_playbooks().deleted_count == 6
    assert client.delete_all_playbooks().deleted_count == 0
    assert len(client.get_profiles("ann", status_filter=["pending", "archived", None]).user_profiles) == 3
    ids = [each.profile_id for each in client.get_all_profiles().user_profiles]
    assert client.delete_profiles_by_ids([*ids, ids[0], "nobody"]).deleted_count == 2


def test_clearing_a_user_takes_their_learnings_and_nobody_elses(client: ReflexioClient) -> None:
    for user in ("ann", "bob"):
        client.add_user_profile([profile(user_id=user), profile(user_id=user, status="archived")])
        client.add_user_playbook([user_playbook(user_id=user)])
    client.add_agent_playbooks([agent_playbook()])
    assert len(client.get_profiles("ann").user_profiles) == 1
    counts = client.clear_user_data("ann").deleted_counts
    assert (counts["profiles"], counts["user_playbooks"]) == (2, 1)
    assert client.get_profiles("ann").user_profiles == []
    assert len(client.get_profiles("bob").user_profiles) == 1
    assert [each.user_id for each in client.get_user_playbooks().user_playbooks] == ["bob"]
    assert len(client.get_agent_playbooks().agent_playbooks) == 1


def test_deleting_by_text_takes_only_what_holds_it(client: ReflexioClient) -> None:
    rows = [
        profile("Likes 100% rye"),
        profile("Likes 100 teas"),
        profile("likes rye toast"),
        profile("Likes 100% rye", user_id="bob"),
        profile("Likes 100% rye", status="archived"),
    ]
    client.add_user_profile(rows)

    def kept(user: str = "ann") -> list[str]:
        return sorted(said(client.get_profiles(user).user_profiles))

    done = client.delete_profile("ann", search_query="100%", wait_for_response=True)
    assert done is not None
    assert "1" in done.message
    assert kept() == ["Likes 100 teas", "likes rye toast"]
    assert kept("bob") == ["Likes 100% rye"]
    for nothing in ("_", "%", "liked", "rye\\"):
        client.delete_profile("ann", search_query=nothing, wait_for_response=True)
    assert kept() == ["Likes 100 teas", "likes rye toast"]
    with pytest.raises(InvalidRequest):
        client.delete_profile("ann", wait_for_response=True)
    with pytest.raises(InvalidRequest):
        client.delete_profile("ann", search_query="   ", wait_for_response=True)
    assert len(client.get_profiles("ann", status_filter=["archived"]).user_profiles) == 1


def test_an_id_and_a_text_delete_the_one_with_the_id(client: ReflexioClient) -> None:
    ids = client.add_user_profile([profile("rye"), profile("rye bread")]).ids
    with pytest.raises(NotFound):
        client.delete_profile("bob", ids[0], wait_for_response=True)
    client.delete_profile("ann", ids[0], "rye", wait_for_response=True)
    assert said(client.get_profiles("ann").user_profiles) == ["rye bread"]


def test_a_deletion_that_nobody_waits_for_is_made(client: ReflexioClient) -> None:
    made = client.add_user_profile([profile()]).ids[0]
    assert client.delete_profile("ann", made) is None
    client.flush()
    assert client.get_profiles("ann").user_profiles == []


# --- counts and cache


def test_statistics_count_what_is_there(client: ReflexioClient, http: httpx.Client) -> None:
    now = int(time.time())
    client.add_user_profile(
        [
            profile(),
            profile(expiration_timestamp=now + 86_400),
            profile(expiration_timestamp=now - 1),
            profile(status="pending"),
            profile(status="archived"),
        ]
    )
    client.add_user_playbook([user_playbook(), user_playbook(user_id="bob"), user_playbook(status="pending")])
    found = http.get("/api/get_profile_statistics").json()
    counts = {key: value for key, value in found.items() if key.endswith("_count")}
    assert counts == {"current_count": 2, "pending_count": 1, "archived_count": 1, "expiring_soon_count": 1}
    stats = client.storage_stats("ann")
    assert (stats.profile_count, stats.playbook_count) == (2, 1)


def test_the_cache_answers_until_this_client_changes_something(client: ReflexioClient, org: Org) -> None:
    made = int(client.add_agent_playbooks([agent_playbook("one")]).ids[0])
    assert said(client.get_agent_playbooks().agent_playbooks) == ["one"]
    with org.client() as other:
        other.add_agent_playbooks([agent_playbook("two")])
    assert said(client.get_agent_playbooks().agent_playbooks) == ["one"]
    assert said(client.get_agent_playbooks(force_refresh=True).agent_playbooks) == ["two", "one"]
    for change in (
        lambda: client.update_agent_playbook(made, content="uno"),
        lambda: client.update_agent_playbook_status(made, playbook_status="approved"),
        lambda: client.delete_agent_playbook(made, wait_for_response=True),
        client.delete_all_playbooks,
    ):
        before = client.get_agent_playbooks().agent_playbooks
        change()
        assert client.get_agent_playbooks().agent_playbooks != before


def test_rows_of_the_table_are_gone_too(client: ReflexioClient, server: Running, org: Org) -> None:
    client.add_user_profile([profile("quince")])
    client.delete_all_profiles()
    every = LearningFilter(Kind.PROFILE, statuses=None)
    left = on_database(server.folder, lambda db: db.of(org.id).read(lambda tx: tx.learnings.page(every, Page(10))))
    assert left.rows == []


@pytest.mark.parametrize(
    ("path", "sent", "named"),
    [
        ("add_user_profile", {"user_profiles": []}, "user_profiles"),
        ("add_user_profile", {"user_profiles": [{"content": "x"}]}, "user_id"),
        ("add_user_profile", {"user_profiles": [profile(colour="red")]}, "colour"),
        ("add_user_profile", {"user_profiles": [profile(profile_time_to_live="a while")]}, "profile_time_to_live"),
        ("add_user_profile", {"user_profiles": [profile(expiration_timestamp=-1)]}, "expiration_timestamp"),
        ("add_user_profile", {"user_profiles": [profile("x" * 100_001)]}, "content"),
        ("add_user_profile", {"user_profiles": [profile(status="gone")]}, "status"),
        ("add_user_profile", {"user_profiles": [profile(custom_features={"a": [[[]] * 3]})] * 1001}, "user_profiles"),
        ("add_user_playbook", {"user_playbooks": [user_playbook(tags=["a|b"])]}, "tags"),
        ("add_user_playbook", {"user_playbooks": [user_playbook(tags="a")]}, "tags"),
        ("add_user_playbook", {"user_playbooks": [user_playbook(created_at=10**15)]}, "created_at"),
        ("add_user_playbook", {"user_playbooks": [user_playbook(source="Not A Source!")]}, "source"),
        ("add_user_playbook", {"user_playbooks": [user_playbook(blocking_issue={"kind": "mood"})]}, "blocking_issue"),
        ("add_user_playbook", {"user_playbooks": [user_playbook(source_interaction_ids=[-1])]}, "source_interaction"),
        ("add_agent_playbook", {"agent_playbooks": [agent_playbook(playbook_status="maybe")]}, "playbook_status"),
        ("add_agent_playbook", {"agent_playbooks": [agent_playbook(source_windows=[{}])]}, "user_playbook_id"),
        ("get_profiles", {"user_id": "ann", "status_filter": ["gone"]}, "status_filter"),
        ("get_user_playbooks", {"limit": 0}, "limit"),
        ("get_user_playbooks", {"cursor": "x"}, "cursor"),
        ("get_agent_playbooks", {"agent_playbook_id": 2**63}, "agent_playbook_id"),
    ],
)
def test_rows_and_questions_that_are_wrong(http: httpx.Client, path: str, sent: dict[str, Any], named: str) -> None:
    assert named in problem(http.post(f"/api/{path}", json=sent), 422)
    assert http.get("/api/get_all_profiles").json()["user_profiles"] == []
    assert http.post("/api/get_user_playbooks", json={}).json()["user_playbooks"] == []
