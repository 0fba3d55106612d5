"""A query parameter is honoured or refused, on every route: one that is passed over would answer for everybody."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.server.app import create_app
from reflexio.settings import Settings
from tests.builders import problem

ROUTES = [
    (method.upper(), path)
    for path, methods in create_app(Settings()).openapi()["paths"].items()
    for method in methods
    if not path.startswith("/v1/")  # the model server behind it decides
]
NOW = datetime.now(UTC)
PROFILES: list[dict[str, Any]] = [
    {"profile_id": "leo-1", "user_id": "leo", "content": "Plays chess", "source": "chat"},
    {
        "profile_id": "leo-2",
        "user_id": "leo",
        "content": "Is away",
        "profile_time_to_live": "one_week",
        "tags": ["absence"],
        "source": "mail",
    },
    {
        "profile_id": "mia-1",
        "user_id": "mia",
        "content": "Plays the piano",
        "last_modified_timestamp": int((NOW - timedelta(days=30)).timestamp()),
        "scope": "always",
    },
    {"profile_id": "mia-2", "user_id": "mia", "content": "Likes tea", "status": "archived"},
    {"profile_id": "mia-3", "user_id": "mia", "content": "Liked tea once", "status": "superseded"},
]


@pytest.fixture
def profiles(client: ReflexioClient) -> ReflexioClient:
    client.add_user_profile([{"scope": "when_relevant", **profile} for profile in PROFILES])
    return client


def _ids(rows: list[Any]) -> list[str]:
    return sorted(row["profile_id"] if isinstance(row, dict) else row.profile_id for row in rows)


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=str)
def test_an_unknown_parameter_is_named_on_every_route(http: httpx.Client, method: str, path: str) -> None:
    answer = http.request(method, path.replace("{operation_id}", "x"), params={"colour": "red"}, json={})
    detail = problem(answer, 422)
    assert "query.colour: unknown query parameter" in detail
    assert answer.json()["errors"][0]["loc"] == ["query", "colour"]


@pytest.mark.parametrize(
    ("call", "known"),
    [
        (("GET", "/api/get_all_interactions?user_id=leo"), "known are cursor, limit"),
        (("GET", "/api/get_playbook_optimizations?status=running"), "known are cursor, limit"),
        (("GET", "/api/get_config?user_id=leo"), "this route has none"),
        (("POST", "/api/publish_interaction?wait=true"), "known are wait_for_response"),
        (("POST", "/api/get_user_playbooks?user_id=leo"), "this route has none"),
        (("DELETE", "/api/delete_all_profiles?user_id=leo"), "this route has none"),
    ],
)
def test_the_known_parameters_are_named(profiles: ReflexioClient, http: httpx.Client, call: Any, known: str) -> None:
    method, url = call
    assert known in problem(http.request(method, url, json={"user_id": "ann"}), 422)
    assert len(profiles.get_all_profiles().user_profiles) == 3


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["leo-1", "leo-2", "mia-1"]),
        ({"user_id": "leo"}, ["leo-1", "leo-2"]),
        ({"user_id": "nobody"}, []),
        ({"user_id": ""}, []),
        ({"profile_id": "mia-1"}, ["mia-1"]),
        ({"profile_id": "mia-1", "user_id": "leo"}, []),
        ({"query": "PLAYS"}, ["leo-1", "mia-1"]),
        ({"query": "100%"}, []),
        ({"source": "mail"}, ["leo-2"]),
        ({"profile_time_to_live": "one_week"}, ["leo-2"]),
        ({"tags": ["absence"]}, ["leo-2"]),
        ({"scope": "always"}, ["mia-1"]),
        ({"status_filter": "archived"}, ["mia-2"]),
        ({"status_filter": "current"}, ["leo-1", "leo-2", "mia-1"]),
        ({"include_tombstones": True, "user_id": "mia"}, ["mia-1", "mia-3"]),
        ({"start_time": NOW - timedelta(days=1)}, ["leo-1", "leo-2"]),
        ({"end_time": NOW - timedelta(days=1)}, ["mia-1"]),
        ({"end_time": NOW + timedelta(days=8), "date_field": "expiration_timestamp"}, ["leo-2"]),
        ({"start_time": NOW + timedelta(days=8), "date_field": "expiration_timestamp"}, ["leo-1", "mia-1"]),
        ({"end_time": NOW + timedelta(days=8), "date_field": "last_modified_timestamp", "user_id": "mia"}, ["mia-1"]),
    ],
)
def test_each_filter_of_get_all_profiles(
    profiles: ReflexioClient, http: httpx.Client, asked: dict[str, Any], found: list[str]
) -> None:
    assert _ids(profiles.get_all_profiles(**asked).user_profiles) == found
    written = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in asked.items()}
    assert _ids(http.get("/api/get_all_profiles", params=written).json()["user_profiles"]) == found


def test_pages_keep_the_filters(profiles: ReflexioClient) -> None:
    first = profiles.get_all_profiles(1, user_id="leo")
    second = profiles.get_all_profiles(1, user_id="leo", cursor=first.next_cursor)
    assert _ids([*first.user_profiles, *second.user_profiles]) == ["leo-1", "leo-2"]
    assert second.next_cursor is None


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"date_field": "birthday"}, "date_field"),
        ({"profile_time_to_live": "soon"}, "profile_time_to_live"),
        ({"start_time": "2026"}, "ISO 8601"),
        ({"limit": "0"}, "limit"),
        ({"status_filter": "lost"}, "status_filter"),
        ({"include_tombstones": "perhaps"}, "include_tombstones"),
    ],
)
def test_a_wrong_value_is_named(http: httpx.Client, asked: dict[str, str], named: str) -> None:
    assert named in problem(http.get("/api/get_all_profiles", params=asked), 422)
