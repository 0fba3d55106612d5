"""A client bound to one session."""

import json

import httpx
import pytest

from reflexio import AsyncReflexioClient
from reflexio.client.sync import ReflexioClient
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


def test_other_calls_pass_through(client: ReflexioClient) -> None:
    assert client.for_session("s").whoami().org_id == "acme"
    assert client.for_session("s").endpoint is client.endpoint


def test_another_session_is_refused(client: ReflexioClient, asked: list[httpx.Request]) -> None:
    with pytest.raises(ValueError, match="bound to session 's'"):
        client.for_session("s").publish_interaction("ann", turns(), session_id="other")
    assert asked == []


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_session_has_a_name(client: ReflexioClient, blank: str) -> None:
    with pytest.raises(ValueError, match="blank"):
        client.for_session(blank)


async def test_the_asynchronous_client_binds_too(asked: list[httpx.Request]) -> None:
    transport = httpx.MockTransport(lambda request: _note(asked, request))
    async with AsyncReflexioClient(transport=transport) as client:
        await client.for_session("s").publish_interaction("ann", turns())
    assert json.loads(asked[0].content)["session_id"] == "s"


def test_a_closed_client_says_so(client: ReflexioClient) -> None:
    with client:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        client.whoami()
