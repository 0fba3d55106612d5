"""Names and arguments of the published client that ours has besides its own."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from reflexio import AsyncReflexioClient
from reflexio.client.sync import ReflexioClient
from reflexio.errors import InvalidRequest
from reflexio.models.search import SearchUserPlaybooksRequest

Sent = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def sent() -> Sent:
    return []


@pytest.fixture
def transport(sent: Sent) -> httpx.MockTransport:
    def note(request: httpx.Request) -> httpx.Response:
        sent.append((request.url.path, json.loads(request.content)))
        return httpx.Response(200, json={"success": True, "message": "stored"})

    return httpx.MockTransport(note)


@pytest.fixture
def client(transport: httpx.MockTransport) -> ReflexioClient:
    return ReflexioClient(transport=transport)


@pytest.fixture(params=[ReflexioClient, AsyncReflexioClient])
def either(request: pytest.FixtureRequest, transport: httpx.MockTransport) -> Any:
    return request.param(transport=transport)


def test_a_search_can_be_awaited_in_either_client(either: Any, sent: Sent) -> None:
    async def call() -> None:
        await either.search_async("tea", user_id="ann")
        await either.for_session("t").search_async(query="tea")

    asyncio.run(call())
    assert [path for path, _ in sent] == ["/api/search", "/api/search"]
    assert (sent[0][1]["query"], sent[0][1]["user_id"]) == ("tea", "ann")
    assert sent[1][1]["session_id"] == "t"


def test_the_former_name_of_a_search_still_works_and_says_so(client: ReflexioClient, sent: Sent) -> None:
    with pytest.warns(DeprecationWarning, match="search_user_profiles"):
        client.search_profiles("ann", "tea", top_k=3)
    with pytest.warns(DeprecationWarning, match="search_user_profiles"):
        client.search_profiles(user_id="ann", query="tea", top_k=3)
    assert sent[0] == sent[1]
    assert sent[0][0] == "/api/search_profiles"
    assert sent[0][1]["top_k"] == 3


CALLS: dict[str, dict[str, Any]] = {
    "search": {"query": "tea", "conversation_history": [{"role": "user", "content": "hello"}]},
    "search_user_profiles": {"user_id": "ann", "query": "tea", "enable_reformulation": True},
    "search_user_playbooks": {"query": "tea", "request_id": "r"},
    "search_agent_playbooks": {"query": "tea", "playbook_status_filter": ["pending"]},
    "search_interactions": {"user_id": "ann", "most_recent_k": 3},
    "get_profiles": {"user_id": "ann", "tags": ["x"]},
    "get_user_playbooks": {"user_id": "ann", "limit": 3},
    "get_agent_playbooks": {"agent_version": "v1", "limit": 3},
}


CACHED = ("get_profiles", "get_agent_playbooks")


@pytest.mark.parametrize("name", CALLS)
def test_a_whole_question_may_be_asked(client: ReflexioClient, sent: Sent, name: str) -> None:
    call: Callable[..., Any] = getattr(client, name)
    call(request=CALLS[name])
    call(CALLS[name], **({"force_refresh": True} if name in CACHED else {}))
    assert [body for _, body in sent] == [sent[0][1]] * 2
    assert CALLS[name].items() <= sent[0][1].items()


def test_it_may_be_a_model_and_stands_in_the_place_of_all_else(client: ReflexioClient, sent: Sent) -> None:
    client.search_user_playbooks(SearchUserPlaybooksRequest(query="tea", top_k=3), user_id="ann", top_k=9)
    assert sent[0][1] == {"query": "tea", "top_k": 3}


def test_what_is_missing_is_named(client: ReflexioClient) -> None:
    with pytest.raises(InvalidRequest, match="user_id"):
        client.search_user_profiles(query="tea")
    with pytest.raises(InvalidRequest, match="query"):
        client.search()
