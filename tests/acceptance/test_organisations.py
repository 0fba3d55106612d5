"""One key, one organisation: no call sees or touches the rows of another."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexio.client.sync import ReflexioClient
from tests.builders import body, name, problem, turns
from tests.conftest import Org

HARMLESS = {"get_config", "whoami"}
SEPARATE = {"publish_interaction", "set_config", "update_config"}


def state(org: Org) -> dict[str, Any]:
    """All that an organisation can see of itself."""
    with org.http() as http:
        return {
            "turns": http.get("/api/get_all_interactions", params={"limit": 10_000}).json()["interactions"],
            "requests": http.post("/api/get_requests", json={"top_k": 10_000}).json()["sessions"],
            "config": http.get("/api/get_config").json(),
            "stats": http.get("/api/storage_stats", params={"user_id": "ann"}).json(),
        }


def operations(url: str) -> list[tuple[str, str]]:
    paths = httpx.get(f"{url}/openapi.json").json()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods if path.startswith("/api/")]


def test_no_route_reaches_the_rows_of_another(make_org: Callable[[], Org]) -> None:
    ours, theirs = make_org(), make_org()
    with theirs.http() as http:
        answer = http.post("/api/publish_interaction", json=body(session_id="s", source="chat")).json()
        interaction = http.get("/api/get_all_interactions").json()["interactions"][0]["interaction_id"]
    before = state(theirs)
    named = {
        "user_id": "ann",
        "session_id": "s",
        "request_id": answer["request_id"],
        "request_ids": [answer["request_id"]],
        "interaction_id": interaction,
    }

    with ours.http() as http:
        document = http.get("/openapi.json").json()
        for method, path in operations(ours.url):
            operation = document["paths"][path][method.lower()]
            params = {each["name"]: named.get(each["name"]) for each in operation.get("parameters", [])}
            sent = _fields(document, operation)
            values = {key: value for key, value in named.items() if key in sent}
            values |= {"interaction_data_list": turns()} if "interaction_data_list" in sent else {}
            if path.endswith("publish_interaction"):
                values = {**values, "user_id": "ours", "session_id": "ours", "request_id": name("request")}
            answered = http.request(
                method,
                path,
                params={key: value for key, value in params.items() if value is not None},
                json=values if "requestBody" in operation else None,
            )
            assert answered.status_code in (200, 404), (path, answered.text)
            verb = path.rpartition("/")[2]
            if verb not in SEPARATE | HARMLESS:
                assert answer["request_id"] not in answered.text or answered.status_code == 404, path
                assert "neighbour" not in answered.text, path
            if verb not in SEPARATE:
                continue
            http.request("DELETE", "/api/delete_all_interactions")

    assert state(theirs) == before


def _fields(document: dict[str, Any], operation: dict[str, Any]) -> set[str]:
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return set(schema.get("properties", {}))


def test_the_same_ids_may_exist_in_two_organisations(make_org: Callable[[], Org]) -> None:
    ours, theirs = make_org(), make_org()
    for org in (ours, theirs):
        with org.http() as http:
            http.post("/api/publish_interaction", json=body(request_id="r", session_id="s")).raise_for_status()
    with ours.client() as client:
        client.delete_request("r", wait_for_response=True)
        client.clear_user_data("ann")
    with theirs.client() as client:
        assert len(client.get_interactions("ann").interactions) == 2


USERS = st.sampled_from(["ann", "bob", "cid"])


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    published=st.lists(st.tuples(st.sampled_from([0, 1]), USERS, st.integers(1, 4)), max_size=12),
    cleared=st.tuples(st.sampled_from([0, 1]), USERS),
)
def test_clearing_deletes_one_user_of_one_organisation(
    make_org: Callable[[], Org], published: list[tuple[int, str, int]], cleared: tuple[int, str]
) -> None:
    clients: list[ReflexioClient] = [make_org().client(), make_org().client()]
    for org, user, count in published:
        clients[org].publish_interaction(user, [{"content": f"{org} {user}"}] * count)

    counts = clients[cleared[0]].clear_user_data(cleared[1]).deleted_counts

    of_user = [count for org, user, count in published if (org, user) == cleared]
    assert (counts["requests"], counts["interactions"]) == (len(of_user), sum(of_user))
    for org, client in enumerate(clients):
        for user in ("ann", "bob", "cid"):
            kept = sum(count for o, u, count in published if (o, u) == (org, user) and (o, u) != cleared)
            assert [each.content for each in client.get_interactions(user).interactions] == [f"{org} {user}"] * kept
        client.close()


# --- who is let in


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", "Basic abc", "bearer rfx_wrong", "Token x"])
def test_with_keys_every_call_needs_a_valid_one(org: Org, header: str) -> None:
    for path in ("/api/whoami", "/api/get_config", "/api/nothing", "/elsewhere"):
        answer = httpx.get(org.url + path, headers={"Authorization": header} if header else {})
        problem(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"


def test_health_version_and_documentation_are_open(org: Org) -> None:
    for path in ("/", "/health", "/health/live", "/health/ready", "/meta/version", "/docs", "/openapi.json"):
        assert httpx.get(org.url + path).is_success


def test_a_refused_call_stores_nothing(org: Org, http: httpx.Client) -> None:
    problem(httpx.post(f"{org.url}/api/publish_interaction", json=body()), 401)
    assert http.get("/api/get_all_interactions").json()["interactions"] == []
