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
SEPARATE = {
    "publish_interaction",
    "set_config",
    "update_config",
    "add_user_profile",
    "add_user_playbook",
    "add_agent_playbook",
}
OWN: dict[str, Any] = {
    "interaction_data_list": turns(),
    "user_profiles": [{"user_id": "ann", "content": "ours"}],
    "user_playbooks": [{"user_id": "ann", "content": "ours"}],
    "agent_playbooks": [{"content": "ours", "playbook_status": "approved"}],
}
ASKED: tuple[dict[str, Any], ...] = ({"user_id": "ann"}, {}, {})
LEARNED = ("profiles", "user_playbooks", "agent_playbooks")


def state(org: Org) -> dict[str, Any]:
    """All that an organisation can see of itself."""
    with org.http() as http:
        return {
            "turns": http.get("/api/get_all_interactions", params={"limit": 10_000}).json()["interactions"],
            "requests": http.post("/api/get_requests", json={"top_k": 10_000}).json()["sessions"],
            "config": http.get("/api/get_config").json(),
            # How many rows still wait for their vector changes by itself.
            "stats": {**http.get("/api/storage_stats", params={"user_id": "ann"}).json(), "unembedded_count": None},
            "learned": [
                http.post(f"/api/get_{kind}", json=sent).json() for kind, sent in zip(LEARNED, ASKED, strict=True)
            ],
            "found": http.post(
                "/api/search", json={"query": "neighbour", "user_id": "ann", "search_mode": "fts"}
            ).json(),
        }


def operations(url: str) -> list[tuple[str, str]]:
    paths = httpx.get(f"{url}/openapi.json").json()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods if path.startswith("/api/")]


def theirs_are(org: Org) -> dict[str, Any]:
    """Rows of every kind in an organisation, and all the names by which another could reach for them."""
    with org.http() as http:
        published = http.post("/api/publish_interaction", json=body(session_id="s", source="chat")).json()
        interaction = http.get("/api/get_all_interactions").json()["interactions"][0]["interaction_id"]
    with org.client() as client:
        profile = client.add_user_profile([{"user_id": "ann", "content": "Trusts the neighbour"}]).ids[0]
        of_user = client.add_user_playbook([{"user_id": "ann", "content": "Ask the neighbour"}]).ids[0]
        approved = {"content": "Leave it with the neighbour", "playbook_status": "approved"}
        of_agent = client.add_agent_playbooks([approved]).ids[0]
        job = client.run_playbook_optimization(agent_playbook_id=int(of_agent)).job_id
    return {
        "user_id": "ann",
        "session_id": "s",
        "request_id": published["request_id"],
        "request_ids": [published["request_id"]],
        "interaction_id": interaction,
        "profile_id": profile,
        "profile_ids": [profile],
        "user_playbook_id": int(of_user),
        "user_playbook_ids": [int(of_user)],
        "agent_playbook_id": int(of_agent),
        "agent_playbook_ids": [int(of_agent)],
        "query": "neighbour",
        "search_query": "neighbour",
        "content": "changed by another",
        "playbook_status": "rejected",
        "entity_types": ["profiles", "user_playbooks", "agent_playbooks"],
        "status_filter": [None, "pending", "archived"],
        "kind": "user_playbook",
        "id": str(of_user),
        "service_name": "profile_generation",
        "outcome": "hurt",
        "job_id": job,
    }


def test_no_route_reaches_the_rows_of_another(make_org: Callable[[], Org]) -> None:
    ours, theirs = make_org(), make_org()
    named = theirs_are(theirs)
    before = state(theirs)
    assert "neighbour" in str(before["found"])

    with ours.http() as http:
        document = http.get("/openapi.json").json()
        for method, path in operations(ours.url):
            operation = document["paths"][path][method.lower()]
            params = {each["name"]: named.get(each["name"]) for each in operation.get("parameters", [])}
            sent = _fields(document, operation)
            values = {key: value for key, value in named.items() if key in sent}
            values |= {key: OWN[key] for key in sent & OWN.keys()}
            if path.endswith("publish_interaction"):
                values = {**values, "user_id": "ours", "session_id": "ours", "request_id": name("request")}
            if path.endswith("run_playbook_optimization"):
                values.pop("user_playbook_id")  # one or the other
            answered = http.request(
                method,
                path,
                params={key: str(value) for key, value in params.items() if isinstance(value, str | int)},
                json=values if "requestBody" in operation else None,
            )
            assert answered.status_code in (200, 404), (path, answered.text)
            verb = path.rpartition("/")[2]
            if verb not in SEPARATE | HARMLESS:
                assert named["request_id"] not in answered.text or answered.status_code == 404, path
                assert "neighbour" not in answered.text, path
            if verb not in SEPARATE:
                continue
            for emptied in ("interactions", "profiles", "playbooks"):
                http.request("DELETE", f"/api/delete_all_{emptied}").raise_for_status()

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
