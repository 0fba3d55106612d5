"""The keywords of the methods come from the request models, and signatures show them."""

import inspect
import json
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, get_args

import httpx
import pytest

from reflexio import AsyncReflexioClient, ReflexioClient
from reflexio.client import fields as generated
from reflexio.errors import InvalidRequest
from reflexio.models.search import SearchMode, SearchUserPlaybooksRequest


@pytest.fixture
def sent() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def client(sent: list[dict[str, Any]]) -> ReflexioClient:
    def note(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        return httpx.Response(200, json={"success": True})

    return ReflexioClient(transport=httpx.MockTransport(note), fail_open=True)


@pytest.mark.parametrize("method", [ReflexioClient.search_user_playbooks, AsyncReflexioClient.search_user_playbooks])
def test_a_signature_shows_every_keyword_with_type_and_default(method: Callable[..., object]) -> None:
    parameters = inspect.signature(method).parameters
    assert list(parameters)[:2] == ["self", "query"]
    assert set(parameters) - {"self", "query"} == set(generated.SearchUserPlaybooksFields.__annotations__)
    assert {parameter.kind for parameter in list(parameters.values())[2:]} == {inspect.Parameter.KEYWORD_ONLY}
    assert (parameters["explain"].annotation, parameters["explain"].default) == (bool, False)
    assert parameters["search_mode"].default is None
    assert get_args(parameters["search_mode"].annotation) == (SearchMode, str, type(None))


def test_no_signature_hides_its_keywords() -> None:
    for name, method in inspect.getmembers(ReflexioClient, inspect.isfunction):
        kinds = {parameter.kind for parameter in inspect.signature(method).parameters.values()}
        assert name.startswith("_") or inspect.Parameter.VAR_KEYWORD not in kinds, name


def test_every_keyword_of_a_model_is_one_of_its_fields() -> None:
    keywords = set(generated.SearchUserPlaybooksFields.__annotations__) - {"request"}
    assert keywords <= set(SearchUserPlaybooksRequest.model_fields)


@pytest.mark.parametrize("name", ["topk", "enable_reformulation"])
def test_an_unknown_keyword_is_a_mistake_of_the_program_also_when_failing_open(
    client: ReflexioClient, sent: list[dict[str, Any]], name: str
) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'; known are agent_playbook_status"):
        client.search("tea", **{name: 3})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=name):
        client.search_user_profiles("ann", **{name: 3})  # type: ignore[arg-type]
    assert sent == []


def test_a_dict_that_is_no_whole_request_is_not_taken_for_one(client: ReflexioClient) -> None:
    with pytest.raises(InvalidRequest, match="profile_id"):
        client.update_user_profile("ann", {"user_id": "ann", "profile_id": "p"})  # type: ignore[arg-type]


def test_custom_features_are_no_whole_request(client: ReflexioClient, sent: list[dict[str, Any]]) -> None:
    client.update_user_profile("ann", "p", custom_features={"user_id": "bob"})
    assert sent == [{"user_id": "ann", "profile_id": "p", "custom_features": {"user_id": "bob"}}]


def test_a_time_without_a_zone_is_local_time(
    client: ReflexioClient, sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        client.get_interactions("ann", start_time=datetime(2026, 3, 1, 12))  # noqa: DTZ001  that is the point
        assert sent == [{"user_id": "ann", "start_time": "2026-03-01T12:00:00-05:00"}]
    finally:
        monkeypatch.undo()
        time.tzset()
