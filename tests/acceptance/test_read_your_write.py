"""What was added, changed or learned is found by its meaning in the next call, and a bad embedder delays no write."""

import time
from collections.abc import Iterator

import pytest

from reflexio.client.sync import ReflexioClient
from tests.builders import eventually
from tests.conftest import StartServer
from tests.endpoint import WIDTH, Endpoint, embeddings_endpoint

FACTS = {
    "She adores sushi and ramen.": "Which cuisine is her favourite?",
    "The customer travels with two toddlers.": "Does this person have small kids?",
    "Her laptop runs Linux.": "Which operating system does the computer have?",
}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with embeddings_endpoint() as endpoint:
        yield endpoint


def variables(endpoint: Endpoint) -> dict[str, str]:
    return {
        "REFLEXIO_EMBEDDER": f"openai:test@{WIDTH}",
        "OPENAI_BASE_URL": endpoint.url,
        "REFLEXIO_LOG_LEVEL": "critical",
    }


def nearest(client: ReflexioClient, query: str) -> list[str]:
    """By meaning alone: words play no part."""
    found = client.search_user_playbooks(query, user_id="ann", search_mode="vector", top_k=1)
    assert not found.degraded
    return [row.content for row in found.user_playbooks]


def playbooks(*contents: str) -> list[dict[str, str]]:
    return [{"user_id": "ann", "content": content} for content in contents]


def test_each_added_row_is_found_by_its_meaning_in_the_next_call(start_server: StartServer) -> None:
    with ReflexioClient(url_endpoint=start_server().url) as client:
        for content, question in FACTS.items():
            added = client.add_user_playbook(playbooks(content))
            assert added.unembedded_count == 0
            assert nearest(client, question) == [content]
        assert client.storage_stats("ann").unembedded_count == 0


def test_a_changed_row_is_found_by_its_new_meaning_and_not_by_the_old_one(start_server: StartServer) -> None:
    first, second, _ = FACTS
    with ReflexioClient(url_endpoint=start_server().url) as client:
        number = int(client.add_user_playbook(playbooks(first)).ids[0])
        client.add_user_playbook(playbooks("The office closes at noon."))
        client.update_user_playbook(number, content=second)
        assert nearest(client, FACTS[second]) == [second]
        key = client.add_user_profile([{"user_id": "ann", "content": first}]).ids[0]
        client.update_user_profile("ann", key, content=second)
        found = client.search_user_profiles("ann", FACTS[second], search_mode="vector", top_k=1)
        assert [profile.content for profile in found.user_profiles] == [second]


def test_an_import_returns_at_once_and_says_how_far_it_is(start_server: StartServer, endpoint: Endpoint) -> None:
    server = start_server(**variables(endpoint))
    with ReflexioClient(url_endpoint=server.url) as client:
        endpoint.hold()
        began = time.monotonic()
        added = client.add_user_playbook(playbooks(*(f"Rule number {number}" for number in range(500))))
        assert time.monotonic() - began < 2
        assert (added.added_count, added.unembedded_count) == (500, 500)
        assert "500 found by meaning once embedded in the background" in (added.message or "")
        assert client.storage_stats("ann").unembedded_count == 500
        endpoint.release()
        eventually(lambda: client.storage_stats("ann").unembedded_count == 0)


@pytest.mark.parametrize("fault", ["hangs", "fails"])
def test_a_bad_endpoint_delays_one_write_for_a_bounded_time_and_the_next_not_at_all(
    start_server: StartServer, endpoint: Endpoint, fault: str
) -> None:
    server = start_server(**variables(endpoint))
    with ReflexioClient(url_endpoint=server.url) as client:
        if fault == "hangs":
            endpoint.hold()
        else:
            endpoint.status = 503
        for bound, content in ((5.0, "Serve tea at four"), (1.0, "Lock the door")):
            began = time.monotonic()
            added = client.add_user_playbook(playbooks(content))
            assert time.monotonic() - began < bound
            assert (added.added_count, added.unembedded_count) == (1, 1)
        number = int(added.ids[0])
        began = time.monotonic()
        client.update_user_playbook(number, content="Lock the window")
        assert time.monotonic() - began < 1
        words = client.search_user_playbooks("window", user_id="ann", search_mode="fts")
        assert [row.content for row in words.user_playbooks] == ["Lock the window"]
        endpoint.status = 200
        endpoint.release()
        eventually(lambda: client.storage_stats("ann").unembedded_count == 0)


def test_a_stored_text_is_sent_to_the_endpoint_once(start_server: StartServer, endpoint: Endpoint) -> None:
    server = start_server(**variables(endpoint))
    with ReflexioClient(url_endpoint=server.url) as client:
        client.add_user_playbook(playbooks("Serve tea at four"))
        for _ in range(3):
            client.search_user_playbooks("Serve tea at four", user_id="ann")
            client.add_user_playbook(playbooks("Serve tea at four"))
        assert endpoint.seen.count("Serve tea at four") == 1


def test_after_an_erasure_no_text_is_known_to_the_cache(start_server: StartServer, endpoint: Endpoint) -> None:
    server = start_server(**variables(endpoint))
    with ReflexioClient(url_endpoint=server.url) as client:
        client.add_user_playbook(playbooks("Serve tea at four"))
        client.clear_user_data("ann")
        client.search_user_playbooks("Serve tea at four", user_id="ann")
        assert endpoint.seen.count("Serve tea at four") == 2
