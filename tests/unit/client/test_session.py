"""A client bound to one session."""

import json
from typing import Any

import httpx
import pytest

from reflexio import AsyncReflexioClient, Config
from reflexio.client.sync import ReflexioClient
from reflexio.errors import InvalidRequest
from reflexio.models.interaction import GetInteractionsRequest, GetRequestsRequest
from tests.builders import turns


@pytest.fixture
def asked() -> list[httpx.Request]:
    return []


@pytest.fixture
def client(asked: list[httpx.Request]) -> ReflexioClient:
    return ReflexioClient(transport=httpx.MockTransport(lambda request: _note(asked, request)))


def _note(asked: list[httpx.Request], request: httpx.Request) -> httpx.Response:
    asked.append(request)
    return httpx.Response(200, json={"success": True, "org_id": "acme"})


def test_every_call_that_takes_a_session_takes_this_one(client: ReflexioClient, asked: list[httpx.Request]) -> None:
    chat = client.for_session(" order-42 ")
    chat.publish_interaction("ann", turns())
    chat.get_requests(user_id="ann")
    chat.finalize_session("ann")
    chat.delete_session(wait_for_response=True)
    assert [json.loads(each.content)["session_id"] for each in asked] == ["order-42"] * 4


def test_the_session_may_also_be_named_in_its_place(client: ReflexioClient, asked: list[httpx.Request]) -> None:
    chat = client.for_session("order-42")
    chat.publish_interaction("ann", turns(), "chat", "v1", "order-42")
    chat.finalize_session("ann", "order-42")
    chat.delete_session("order-42", True)
    chat.get_requests({"user_id": "ann"})
    chat.get_requests(request=GetRequestsRequest(user_id="ann"))
    assert [json.loads(each.content)["session_id"] for each in asked] == ["order-42"] * 5
    for method, given in (
        (chat.finalize_session, ("ann", "other")),
        (chat.delete_session, ("other",)),
        (chat.get_requests, ({"session_id": "other"},)),
    ):
        with pytest.raises(ValueError, match="bound to session 'order-42'"):
            method(*given)
    assert len(asked) == 5


def test_other_calls_pass_through(client: ReflexioClient) -> None:
    assert client.for_session("s").whoami().org_id == "acme"
    assert client.for_session("s").endpoint is client.endpoint


def test_another_session_is_refused(client: ReflexioClient, asked: list[httpx.Request]) -> None:
    with pytest.raises(ValueError, match="bound to session 's'"):
        client.for_session("s").publish_interaction("ann", turns(), session_id="other")
    assert asked == []


@pytest.mark.parametrize("blank", ["", "  ", None])
def test_a_session_has_a_name(client: ReflexioClient, blank: Any) -> None:
    with pytest.raises(ValueError, match="blank"):
        client.for_session(blank)


async def test_the_asynchronous_client_binds_too(asked: list[httpx.Request]) -> None:
    transport = httpx.MockTransport(lambda request: _note(asked, request))
    async with AsyncReflexioClient(transport=transport) as client:
        await client.for_session("s").publish_interaction("ann", turns())
    assert json.loads(asked[0].content)["session_id"] == "s"


# --- as published clients call it


def test_publishing_takes_its_arguments_in_the_published_order(
    client: ReflexioClient, asked: list[httpx.Request]
) -> None:
    done = client.publish_interaction("ann", turns(), "chat", "v1", "s", True, True)
    sent = json.loads(asked[0].content)
    assert (sent["source"], sent["agent_version"], sent["session_id"]) == ("chat", "v1", "s")
    assert sent["skip_aggregation"]
    assert asked[0].url.params["wait_for_response"] == "true"
    assert done.endpoint_url == client.endpoint.url


def test_a_whole_question_may_be_asked(client: ReflexioClient, asked: list[httpx.Request]) -> None:
    client.get_interactions({"user_id": "ann", "top_k": 3})
    client.get_interactions(request={"user_id": "ann", "top_k": 3})
    client.get_interactions(GetInteractionsRequest(user_id="ann", top_k=3))
    client.get_interactions(user_id="ann", top_k=3)
    client.get_requests({"user_id": "ann", "top_k": 3}, user_id="bob")
    assert [json.loads(each.content) for each in asked] == [{"user_id": "ann", "top_k": 3}] * 5
    with pytest.raises(InvalidRequest, match="user_id"):
        client.get_interactions()


async def test_names_that_end_in_async_are_awaited_in_both_clients(
    client: ReflexioClient, asked: list[httpx.Request]
) -> None:
    assert (await client.publish_interaction_async("ann", turns(), session_id="s")).success
    assert (await client.finalize_session_async("ann", "s")).success
    assert (await client.for_session("s").publish_interaction_async("ann", turns())).success
    transport = httpx.MockTransport(lambda request: _note(asked, request))
    async with AsyncReflexioClient(transport=transport) as awaited:
        assert (await awaited.publish_interaction_async("ann", turns(), session_id="s")).success
    assert [json.loads(each.content)["session_id"] for each in asked] == ["s"] * 4


def test_what_became_of_settings_can_be_read_like_a_dict(client: ReflexioClient) -> None:
    done = client.update_config(partial={"window_size": 20})
    assert (done["success"], done.get("msg"), done.get("nothing", 1)) == (True, None, 1)
    assert client.set_config(Config(window_size=3))["success"]


def test_a_closed_client_says_so(client: ReflexioClient) -> None:
    with client:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        client.whoami()
