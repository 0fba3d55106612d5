"""Search over the wire: modes, filters, thresholds, explanations, and who may see what."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.models.learning import Status
from reflexio.models.wording import without_hidden
from reflexio.server.process import running_server
from tests.builders import eventually, name, new_key, turns
from tests.conftest import Org, Running
from tests.endpoint import WIDTH, embeddings_endpoint

REFUND = "Give the money back when a parcel never arrives"
FILLER = "Order number {} is ready at counter {}"


def said(rows: list[Any]) -> list[str]:
    return [row.content for row in rows]


def learned(client: ReflexioClient, *contents: str, **more: Any) -> list[int]:
    rows = [{"user_id": "ann", "content": content, **more} for content in contents]
    return [int(each) for each in client.add_user_playbook(rows).ids]


def shared(client: ReflexioClient, *contents: str, **more: Any) -> list[int]:
    rows = [{"content": content, "playbook_status": "approved", **more} for content in contents]
    return [int(each) for each in client.add_agent_playbooks(rows).ids]


def found(client: ReflexioClient, query: str, **asked: Any) -> list[str]:
    return said(client.search_user_playbooks(query, **asked).user_playbooks)


# --- words and meaning


def test_a_row_is_found_by_words_at_once_and_by_meaning_soon(client: ReflexioClient) -> None:
    learned(client, REFUND, "Speak slowly with tourists", "Water the plants on Monday", "Lock the door at night")
    assert found(client, "parcel", search_mode="fts") == [REFUND]
    assert found(client, "reimbursement of lost shipments", search_mode="fts") == []
    eventually(lambda: found(client, "reimbursement of lost shipments", search_mode="vector", top_k=1) == [REFUND])
    assert found(client, "reimbursement of lost shipments", top_k=1) == [REFUND]


def test_a_changed_row_is_found_by_its_new_meaning_only(client: ReflexioClient) -> None:
    (row, *_) = learned(client, "Apples and pears", "Trains and planes")
    eventually(lambda: found(client, "fruit", search_mode="vector", top_k=1) == ["Apples and pears"])
    client.update_user_playbook(row, content="Dogs and cats")
    eventually(lambda: found(client, "animals", search_mode="vector", top_k=1) == ["Dogs and cats"])
    assert found(client, "apples", search_mode="fts") == []


def test_an_explanation_tells_why_each_hit_stands_there(client: ReflexioClient) -> None:
    learned(client, REFUND, "A parcel goes to the counter", "Lock the door at night")
    eventually(lambda: len(found(client, "x", search_mode="vector")) == 3)
    answer = client.search_user_playbooks("parcel money", explain=True)
    why = answer.explanations
    assert why is not None
    assert [each.id for each in why] == [str(row.user_playbook_id) for row in answer.user_playbooks]
    assert [each.score for each in why] == sorted((each.score for each in why), reverse=True)
    assert (why[0].words_rank, why[1].words_rank, why[2].words_rank) == (1, 2, None)
    assert all(each.vector_score is not None and -1 <= each.vector_score <= 1 for each in why)
    assert all(each.why for each in why)
    assert client.search_user_playbooks("parcel").explanations is None
    by_words = client.search_user_playbooks("parcel", explain=True, search_mode="fts").explanations
    assert by_words is not None
    assert all(each.vector_score is None for each in by_words)


@pytest.mark.parametrize("query", ["", "   ", None, "\x1c", "\u2003"])
def test_without_a_query_the_newest_rows_come_even_with_an_explanation(
    client: ReflexioClient, query: str | None
) -> None:
    learned(client, "old", created_at=5)
    learned(client, "new", created_at=9)
    answer = client.search_user_playbooks(query, explain=True)
    assert said(answer.user_playbooks) == ["new", "old"]
    assert not answer.degraded


def test_a_threshold_leaves_out_what_is_far_and_has_no_word(client: ReflexioClient) -> None:
    learned(client, REFUND, "Lock the door at night")
    eventually(lambda: len(found(client, "x", search_mode="vector")) == 2)
    query = "reimburse a parcel"
    assert len(found(client, query)) == 2
    assert found(client, query, threshold=0.35, search_mode="vector") == [REFUND]
    assert found(client, query, threshold=0.35) == [REFUND]
    assert found(client, query, threshold=1.0, search_mode="vector") == []


def test_turns_are_found_by_words_and_meaning(client: ReflexioClient) -> None:
    talk = turns("My parcel never came", "I will refund it", "Do you sell umbrellas?", "Yes, in blue")
    first = client.publish_interaction("ann", talk)
    client.publish_interaction("ann", turns("Is the parcel here now?"))
    client.publish_interaction("bob", turns("My parcel is broken"))

    def turn(query: str | None, **asked: Any) -> list[str]:
        return said(client.search_interactions("ann", query, **asked).interactions)

    # Publishing only stores: the words of a turn are indexed a moment later.
    both = {"My parcel never came", "Is the parcel here now?"}
    eventually(lambda: set(turn("parcel", search_mode="fts")) == both)
    assert turn("parcel", search_mode="fts", request_id=first.request_id) == ["My parcel never came"]
    umbrellas = ["Do you sell umbrellas?"]
    eventually(lambda: turn("something against the rain", search_mode="vector", top_k=1) == umbrellas, seconds=120)
    assert len(turn(None, top_k=3)) == 3
    assert sorted(turn(None, request_id=first.request_id)) == sorted(each["content"] for each in talk)


def test_only_the_most_recent_turns_are_searched_when_asked(client: ReflexioClient) -> None:
    for at, text in enumerate(("tea one", "tea two", "tea three")):
        client.publish_interaction("ann", [{"content": text, "created_at": 100 + at}])

    def newest() -> set[str]:
        return set(said(client.search_interactions("ann", "tea", most_recent_k=2).interactions))

    eventually(lambda: newest() == {"tea two", "tea three"})


def test_the_most_recent_turns_of_one_publish_are_the_last_ones(client: ReflexioClient) -> None:
    made = client.publish_interaction("ann", [{"content": f"bananas {n}"} for n in range(10)])
    eventually(lambda: len(client.search_interactions("ann", "bananas").interactions) == 10)

    def newest(query: str | None, count: int, **asked: Any) -> list[str]:
        return sorted(said(client.search_interactions("ann", query, most_recent_k=count, **asked).interactions))

    assert newest("bananas", 1) == newest(None, 1) == ["bananas 9"]
    assert newest("bananas", 2, request_id=made.request_id) == ["bananas 8", "bananas 9"]
    assert newest(None, 2) == newest(None, 2, request_id=made.request_id) == ["bananas 8", "bananas 9"]
    client.publish_interaction("ann", turns("apples", "pears"))
    assert newest(None, 1, request_id=made.request_id) == ["bananas 9"]


# --- filters come before ranking


@pytest.fixture(scope="module")
def quick_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server whose embedder only counts words: for many rows, where meaning does not matter."""
    folder = tmp_path_factory.mktemp("quick-server")
    new_key(folder, "first")
    with embeddings_endpoint() as endpoint:
        embedder = {"REFLEXIO_EMBEDDER": f"openai:test@{WIDTH}", "OPENAI_BASE_URL": endpoint.url}
        with running_server(folder, embedder) as url:
            yield Running(url, folder)


@pytest.fixture
def quick_org(quick_server: Running) -> Callable[[], Org]:
    def make() -> Org:
        org = name("org")
        return Org(org, quick_server.url, new_key(quick_server.folder, org))

    return make


@pytest.fixture
def crowd(quick_org: Callable[[], Org]) -> Iterator[ReflexioClient]:
    """2,000 rows that all hold the query's words. Gone at the end, so that nobody waits for their vectors."""
    with quick_org().client() as client:
        for start in (0, 1000):
            learned(client, *(FILLER.format(n, n % 7) for n in range(start, start + 1000)), created_at=1000)
        yield client
        client.delete_all_playbooks()


FEW: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "version": ({"agent_version": "v9"}, {"agent_version": "v9"}),
    "name": ({"playbook_name": "rare"}, {"playbook_name": "rare"}),
    "status": ({"status": "archived"}, {"status_filter": [Status.ARCHIVED]}),
    "source": ({"source": "fax"}, {"source": "fax"}),
    "time": ({"created_at": 50}, {"end_time": datetime.fromtimestamp(60, UTC)}),
    "tags": ({"tags": ["odd", "even"]}, {"tags": ["odd"]}),
    "user": ({"user_id": "bob"}, {"user_id": "bob"}),
}


def test_a_filter_that_leaves_three_of_two_thousand_gives_all_three(crowd: ReflexioClient) -> None:
    rare = {}
    for what, (stored, _) in FEW.items():
        rare[what] = [f"Order by {what} number {n} is late at the counter in the yard" for n in range(3)]
        learned(crowd, *rare[what], **{"created_at": 1000, **stored})
    everything = sum(map(len, rare.values()))

    def embedded() -> bool:
        asked = {"user_id": "bob", "search_mode": "vector"}
        return len(found(crowd, "order", **asked)) == 3

    eventually(embedded, seconds=90)
    assert everything == 21
    for what, (_, asked) in FEW.items():
        for mode in ("fts", "hybrid", "vector"):
            hits = found(crowd, "Is my order ready at counter 3?", search_mode=mode, top_k=5, **asked)
            assert sorted(hits) == rare[what], (what, mode)


def test_an_old_exact_match_among_thousands_is_first(crowd: ReflexioClient) -> None:
    learned(crowd, "Zanzibar cloves need a phytosanitary form", created_at=1)
    for start in (2000, 3000, 4000, 5000):
        learned(crowd, *(FILLER.format(n, n % 7) for n in range(start, start + 1000)))
    query = "phytosanitary form for cloves from Zanzibar"
    assert found(crowd, query, search_mode="fts", top_k=1) == ["Zanzibar cloves need a phytosanitary form"]
    assert found(crowd, query, top_k=1) == ["Zanzibar cloves need a phytosanitary form"]


def test_a_filter_among_many_thousands_is_not_crowded_out(crowd: ReflexioClient) -> None:
    for start in range(2000, 7000, 1000):
        learned(crowd, *(FILLER.format(n, n % 7) for n in range(start, start + 1000)))
    rare = [f"Order {n} at counter five" for n in "abc"]
    learned(crowd, *rare, agent_version="v9", status="archived")
    for asked in ({"agent_version": "v9", "status_filter": ["archived"]}, {"status_filter": ["archived"]}):
        assert sorted(found(crowd, "order at the counter", search_mode="fts", top_k=3, **asked)) == rare


def test_another_organisation_never_crowds_out_or_moves_a_ranking(quick_org: Callable[[], Org]) -> None:
    ours, theirs = quick_org(), quick_org()
    with theirs.client() as loud:
        for start in range(0, 9000, 1000):
            learned(loud, *(f"Refund case {n} of the other house" for n in range(start, start + 1000)))
    with ours.client() as client:
        for start in range(0, 6000, 1000):
            learned(client, *(FILLER.format(n, n % 7) for n in range(start, start + 1000)))
        learned(client, "Refund within a week", "Refund case: ask twice")
        assert found(client, "refund", search_mode="fts") == ["Refund within a week", "Refund case: ask twice"]
        before = client.search_user_playbooks("refund case order", search_mode="fts", explain=True)
        with theirs.client() as loud:
            learned(loud, *(["Refund case order"] * 1000))
            after = client.search_user_playbooks("refund case order", search_mode="fts", explain=True)
            loud.delete_all_playbooks()
        client.delete_all_playbooks()
    assert before.explanations == after.explanations


def test_top_k_is_filled_and_kept(client: ReflexioClient) -> None:
    learned(client, *(f"Tea number {n}" for n in range(30)))
    assert len(found(client, "tea", top_k=25, search_mode="fts")) == 25
    assert len(found(client, "tea", top_k=10_000)) == 30
    assert len(found(client, "tea")) == 10


# --- unified search


def test_what_a_user_taught_is_private(client: ReflexioClient) -> None:
    client.add_user_profile(
        [{"user_id": "ann", "content": "Tea with milk"}, {"user_id": "bob", "content": "Tea, black"}]
    )
    client.add_user_playbook(
        [{"user_id": "ann", "content": "Serve tea at four"}, {"user_id": "bob", "content": "No tea late"}]
    )
    shared(client, "Tea is free for guests")
    for mode in ("fts", "hybrid"):
        anns = client.search("tea", user_id="ann", search_mode=mode)
        assert said(anns.profiles) == ["Tea with milk"]
        assert said(anns.user_playbooks) == ["Serve tea at four"]
        assert said(anns.agent_playbooks) == ["Tea is free for guests"]
        nobodys = client.search("tea", search_mode=mode)
        assert (nobodys.profiles, nobodys.user_playbooks) == ([], [])
        assert said(nobodys.agent_playbooks) == ["Tea is free for guests"]
        strangers = client.search("tea", user_id="", search_mode=mode)
        assert (strangers.profiles, strangers.user_playbooks) == ([], [])


def test_an_explanation_names_its_kind(client: ReflexioClient) -> None:
    client.add_user_profile([{"user_id": "ann", "content": "Tea with milk"}])
    learned(client, "Serve tea at four")
    shared(client, "Tea is free")
    told = client.search("tea", user_id="ann", explain=True).explanations or []
    assert [each.kind for each in told] == ["profile", "user_playbook", "agent_playbook"]
    client.publish_interaction("ann", turns("More tea"))
    eventually(lambda: len(client.search_interactions("ann", "tea").interactions) == 1)
    (turn,) = client.search_interactions("ann", "tea", explain=True).explanations or []
    assert turn.kind == "interaction"


def test_only_what_was_asked_for_is_searched(client: ReflexioClient) -> None:
    client.add_user_profile([{"user_id": "ann", "content": "Tea with milk"}])
    learned(client, "Serve tea at four")
    shared(client, "Tea is free")
    answer = client.search("tea", user_id="ann", entity_types=["profiles"])
    assert (len(answer.profiles), answer.user_playbooks, answer.agent_playbooks) == (1, [], [])
    answer = client.search("tea", user_id="ann", entity_types=["user_playbooks", "agent_playbooks"])
    assert (answer.profiles, len(answer.user_playbooks), len(answer.agent_playbooks)) == ([], 1, 1)


def test_approval_is_a_gate(client: ReflexioClient) -> None:
    for status in ("approved", "pending", "rejected"):
        shared(client, f"Tea {status}", playbook_status=status)
    shared(client, "Tea archived", status="archived")

    def seen(**asked: Any) -> set[str]:
        return {each.removeprefix("Tea ") for each in said(client.search("tea", **asked).agent_playbooks)}

    def alone(**asked: Any) -> set[str]:
        hits = client.search_agent_playbooks("tea", **asked).agent_playbooks
        return {each.removeprefix("Tea ") for each in said(hits)}

    assert seen() == {"approved"}
    assert seen(agent_playbook_status_filter=["pending"]) == {"pending"}
    assert seen(agent_playbook_status_filter=["approved", "pending"]) == {"approved", "pending"}
    assert alone() == {"approved"}
    assert alone(playbook_status_filter="pending") == {"pending"}
    assert alone(playbook_status_filter=["pending", "approved"]) == {"pending", "approved"}
    assert alone(status_filter=["pending"]) == {"pending"}
    assert alone(status_filter=["pending", None]) == {"approved", "pending"}
    assert alone(status_filter=["pending", None], playbook_status_filter=["rejected"]) == {"rejected"}
    shared(client, "Tea forgotten", status="archived", playbook_status="pending")
    assert alone(status_filter=["archived"]) == {"archived", "forgotten"}
    assert alone(status_filter=["archived"], playbook_status_filter=["approved"]) == {"archived"}


def test_a_decision_counts_in_the_next_search(client: ReflexioClient) -> None:
    (row,) = shared(client, "Tea for all", playbook_status="pending")
    assert client.search("tea").agent_playbooks == []
    client.update_agent_playbook_status(row, playbook_status="approved")
    assert said(client.search("tea").agent_playbooks) == ["Tea for all"]
    client.update_agent_playbook_status(row, playbook_status="rejected")
    assert client.search("tea").agent_playbooks == []


def test_a_covered_user_playbook_is_not_repeated_and_top_k_is_filled(client: ReflexioClient) -> None:
    covered = learned(client, *(f"Tea first, reason {n}" for n in range(10)))
    learned(client, *(f"Tea second, reason {n}, which is a longer text" for n in range(8)))
    windows = [{"user_playbook_id": row, "source_interaction_ids": []} for row in covered]
    shared(client, "Tea first", source_windows=windows)
    for mode in ("fts", "hybrid"):
        answer = client.search("tea first reason", user_id="ann", top_k=5, search_mode=mode)
        assert said(answer.agent_playbooks) == ["Tea first"]
        assert len(answer.user_playbooks) == 5
        assert all("second" in content for content in said(answer.user_playbooks))


def test_a_user_playbook_with_the_words_of_an_agent_playbook_is_not_repeated(client: ReflexioClient) -> None:
    learned(client, *["Tea first"] * 9, *(f"Tea second {n}" for n in range(5)))
    shared(client, "Tea first")
    answer = client.search("tea first", user_id="ann", top_k=5, search_mode="fts")
    assert sorted(said(answer.user_playbooks)) == [f"Tea second {n}" for n in range(5)]


def test_an_agent_playbook_that_is_not_returned_covers_nothing(client: ReflexioClient) -> None:
    (row,) = learned(client, "Tea first")
    shared(client, "Tea first", playbook_status="pending", source_windows=[{"user_playbook_id": row}])
    assert said(client.search("tea", user_id="ann").user_playbooks) == ["Tea first"]


def test_unified_search_filters_by_version_name_source_and_tags(client: ReflexioClient) -> None:
    learned(client, "Tea one", agent_version="v1", playbook_name="a", source="chat", tags=["x"])
    learned(client, "Tea two", agent_version="v2", playbook_name="b", source="mail", tags=["y"])
    for asked in ({"agent_version": "v1"}, {"playbook_name": "a"}, {"source": "chat"}, {"tags": ["x"]}):
        assert said(client.search("tea", user_id="ann", **asked).user_playbooks) == ["Tea one"], asked


# --- bad input


WEIRD = [
    '"',
    "'",
    '""" AND "',
    "AND OR NOT NEAR(a b, 2)",
    "content:tea",
    "tea*",
    "^tea",
    "-tea +tea",
    "(tea",
    "tea)",
    "{a b} : tea",
    "\\",
    "%_",
    "tea\u0000"[:3],
    "'; DROP TABLE learnings; --",
    "茶をください",
    "чай с молоком",
    "شاي بالحليب",
    "चाय दूध के साथ",
    "ชาร้อนหนึ่งแก้ว",
    "차 한 잔",
    "τσάι με γάλα",
    "תה עם חלב",
    "🍵🫖 👨‍👩‍👧‍👦",
    "e\u0301\u0302\u0303" * 50,
    "\u202etea\u200b",
    "\U0010ffff\ufffe",
    "a" * 5000,
    " ".join(str(n) for n in range(5000)),
]


@pytest.mark.parametrize("query", WEIRD, ids=range(len(WEIRD)))
def test_any_text_may_be_asked_and_found(client: ReflexioClient, query: str) -> None:
    learned(client, f"Before {query} after", "Something else")
    client.add_user_profile([{"user_id": "ann", "content": query}])
    for mode in ("fts", "vector", "hybrid"):
        answer = client.search(query, user_id="ann", search_mode=mode)
        assert answer.search_mode_effective == mode, "its vector was made"
    if any(each.isalnum() for each in query):
        assert said(client.search(query, user_id="ann", search_mode="fts").profiles) == [without_hidden(query)]
    assert client.get_context(query, user_id="ann").success


def test_a_query_of_a_megabyte_is_answered(client: ReflexioClient, http: httpx.Client) -> None:
    learned(client, "The needle is here")
    hay = "hay " * 249_000
    started = time.monotonic()
    assert found(client, f"needle {hay}", search_mode="fts") == ["The needle is here"]
    assert found(client, f"{hay} needle", search_mode="fts") == ["The needle is here"]
    assert client.search(f"needle {hay}", user_id="ann").success
    assert time.monotonic() - started < 10
    for path in ("search", "search_user_playbooks", "context"):
        assert http.post(f"/api/{path}", json={"query": "x" * 1_000_001}).status_code == 422


@pytest.mark.parametrize(
    ("path", "sent", "named"),
    [
        ("search", {"query": ""}, "query"),
        ("search", {"query": "  "}, "query"),
        ("search", {}, "query"),
        ("search", {"query": "a", "top_k": 0}, "top_k"),
        ("search", {"query": "a", "top_k": -1}, "top_k"),
        ("search", {"query": "a", "top_k": 10_001}, "top_k"),
        ("search", {"query": "a", "threshold": 1.1}, "threshold"),
        ("search", {"query": "a", "search_mode": "magic"}, "search_mode"),
        ("search", {"query": "a", "entity_types": ["secrets"]}, "entity_types"),
        ("search", {"query": "a", "agent_playbook_status_filter": ["maybe"]}, "agent_playbook_status_filter"),
        ("search", {"query": "a", "colour": "red"}, "colour"),
        ("search_user_playbooks", {"query": "a", "top_k": 0}, "top_k"),
        ("search_profiles", {"query": "a"}, "user_id"),
        ("search_interactions", {"query": "a"}, "user_id"),
        ("search_interactions", {"user_id": "ann", "most_recent_k": 0}, "most_recent_k"),
        ("search_agent_playbooks", {"query": 7}, "query"),
        ("context", {"query": "a", "always_share": 1.5}, "always_share"),
        ("context", {"query": "a", "max_tokens": 0}, "max_tokens"),
        ("context", {"query": "a", "max_tokens": 10**7}, "max_tokens"),
    ],
)
def test_questions_that_are_wrong(http: httpx.Client, path: str, sent: dict[str, Any], named: str) -> None:
    answer = http.post(f"/api/{path}", json=sent)
    assert answer.status_code == 422, answer.text
    assert named in answer.json()["detail"]


def test_ten_thousand_hits_of_many_rows(crowd: ReflexioClient) -> None:
    for mode in ("fts", "hybrid"):
        assert len(found(crowd, "order", top_k=10_000, search_mode=mode)) == 2000


def test_a_huge_content_is_stored_and_found_by_its_ends(client: ReflexioClient) -> None:
    learned(client, "alpha " + "filler " * 14_000 + "omega")
    assert len(found(client, "omega alpha", search_mode="fts")) == 1
    eventually(lambda: len(found(client, "alpha", search_mode="vector")) == 1)
