"""One key, one organisation: no call sees or touches the rows of another."""

from collections.abc import Callable

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reflexio.client.sync import ReflexioClient
from tests.builders import body, problem
from tests.conftest import Org


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
