"""Every field and parameter that the published 0.2.32 client puts on the wire is known here.

That client sends all fields of a request with each call, also those that it does not use. One row a call: the fields
with a value that the server must accept; what is None is sent as null.
"""

from typing import Any

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from tests.builders import eventually, problem

TIMES: dict[str, Any] = {"start_time": "2026-01-01T00:00:00", "end_time": None}
TRACING: dict[str, Any] = {"request_id": "r-1", "session_id": "s-1"}
SEARCH: dict[str, Any] = {"threshold": 0.1, "enable_reformulation": False, "search_mode": "hybrid"}
SAVED: dict[str, Any] = {"expanded_terms": None, "tags": ["food"], "embedding": [], "status": None, "source": "chat"}
LEARNED: dict[str, Any] = {"source_span": None, "notes": None, "reader_angle": None, "source_interaction_ids": [1]}
REPLACED: dict[str, Any] = {"merged_into": None, "superseded_by": None}
PLAYBOOK: dict[str, Any] = {
    **SAVED,
    **REPLACED,
    "agent_version": "v1",
    "playbook_name": "playbook",
    "created_at": 1_790_000_000,
    "content": "Ask first.",
    "trigger": "a refund",
    "rationale": None,
    "blocking_issue": {"kind": "missing_tool", "details": "none"},
}
PROFILE: dict[str, Any] = {
    **SAVED,
    **LEARNED,
    **REPLACED,
    "profile_id": "p-9",
    "user_id": "ann",
    "content": "Likes tea.",
    "last_modified_timestamp": 1_790_000_000,
    "generated_from_request_id": "cli-manual",
    "profile_time_to_live": "infinity",
    "expiration_timestamp": 4_102_444_800,
    "custom_features": {"a": 1},
    "extractor_names": None,
}
USER_PLAYBOOK = {**PLAYBOOK, **LEARNED, "user_playbook_id": 0, "user_id": "ann", "request_id": "r-1"}
AGENT_PLAYBOOK = {**PLAYBOOK, "agent_playbook_id": 0, "playbook_status": "pending", "playbook_metadata": ""}
RERUN: dict[str, Any] = {**TIMES, "source": "chat"}
CALLS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("POST", "finalize_session", {"user_id": "ann", "session_id": "s-1"}),
    ("POST", "get_interactions", {"user_id": "ann", **TIMES, "top_k": 30}),
    (
        "POST",
        "search_interactions",
        {
            **TIMES,
            "user_id": "ann",
            "request_id": None,
            "query": "tea",
            "top_k": None,
            "most_recent_k": 5,
            "threshold": None,
            "search_mode": "hybrid",
        },
    ),
    ("POST", "get_requests", {**TIMES, **TRACING, "user_id": "ann", "source": "", "top_k": 30, "offset": 0}),
    (
        "POST",
        "get_profiles",
        {
            **TIMES,
            "user_id": "ann",
            "profile_id": None,
            "query": None,
            "top_k": 30,
            "source": None,
            "profile_time_to_live": "infinity",
            "status_filter": [None, "pending", "None"],
            "tags": None,
        },
    ),
    (
        "POST",
        "search_profiles",
        {
            **TIMES,
            **TRACING,
            **SEARCH,
            "user_id": "ann",
            "generated_from_request_id": None,
            "query": "tea",
            "top_k": 10,
            "source": None,
            "custom_feature": "a",
            "extractor_name": "facts",
            "tags": None,
        },
    ),
    ("POST", "add_user_profile", {"user_profiles": [PROFILE]}),
    ("PUT", "update_user_profile", {"user_id": "ann", "profile_id": "p-1", "content": "x", "custom_features": None}),
    (
        "POST",
        "get_user_playbooks",
        {
            **TIMES,
            "limit": 100,
            "user_playbook_id": None,
            "user_id": "ann",
            "request_id": None,
            "query": None,
            "playbook_name": "playbook",
            "agent_version": "v1",
            "status_filter": [None],
            "tags": ["food"],
        },
    ),
    (
        "POST",
        "search_user_playbooks",
        {
            **TIMES,
            **TRACING,
            **SEARCH,
            "query": "refund",
            "user_id": "ann",
            "agent_version": "v1",
            "playbook_name": None,
            "source": "chat",
            "status_filter": [None],
            "tags": None,
            "top_k": 10,
        },
    ),
    ("POST", "add_user_playbook", {"user_playbooks": [USER_PLAYBOOK]}),
    ("POST", "upgrade_all_profiles", {"user_id": "ann", "profile_ids": ["p-1"], "only_affected_users": True}),
    ("POST", "downgrade_all_profiles", {"user_id": "ann", "profile_ids": None, "only_affected_users": False}),
    (
        "POST",
        "upgrade_all_user_playbooks",
        {"agent_version": "v1", "playbook_name": "playbook", "archive_current": True},
    ),
    ("POST", "downgrade_all_user_playbooks", {"agent_version": "v1", "playbook_name": None}),
    ("POST", "rerun_profile_generation", {**RERUN, "user_id": "ann", "extractor_names": ["facts"]}),
    ("POST", "rerun_playbook_generation", {**RERUN, "agent_version": "v1", "playbook_name": "playbook"}),
    ("POST", "manual_profile_generation", {"user_id": "ann", "source": "chat", "extractor_names": None}),
    ("POST", "manual_playbook_generation", {"agent_version": "v1", "source": None, "playbook_name": None}),
    ("POST", "run_playbook_aggregation", {"agent_version": "v1", "playbook_name": "playbook"}),
    (
        "POST",
        "get_agent_playbooks",
        {
            **TIMES,
            **TRACING,
            "limit": 100,
            "agent_playbook_id": None,
            "query": None,
            "playbook_name": None,
            "agent_version": "v1",
            "status_filter": [None],
            "playbook_status_filter": "pending",
            "tags": None,
        },
    ),
    (
        "POST",
        "search_agent_playbooks",
        {
            **TIMES,
            **TRACING,
            **SEARCH,
            "query": "refund",
            "user_id": "ann",
            "agent_version": None,
            "playbook_name": None,
            "source": None,
            "status_filter": None,
            "playbook_status_filter": ["approved", "pending"],
            "tags": None,
            "top_k": 10,
        },
    ),
    ("POST", "add_agent_playbook", {"agent_playbooks": [AGENT_PLAYBOOK]}),
    (
        "POST",
        "search",
        {
            **SEARCH,
            **TRACING,
            "query": "refund",
            "top_k": 5,
            "agent_version": "v1",
            "playbook_name": None,
            "user_id": "ann",
            "source": None,
            "tags": None,
            "entity_types": ["profiles", "user_playbooks", "agent_playbooks"],
            "agent_playbook_status_filter": ["approved"],
            "conversation_history": [{"role": "User", "content": "hello"}],
            "enable_agent_answer": False,
            "interaction_id": 7,
        },
    ),
    ("POST", "get_agent_success_evaluation_results", {**TIMES, "limit": 100, "agent_version": "v1"}),
    ("POST", "cancel_operation", {"service_name": None}),
    ("POST", "get_learning_provenance", {"kind": "profile", "id": "p-1"}),
    ("POST", "clear_user_data", {"user_id": "nobody"}),
    ("DELETE", "delete_session", {"session_id": "s-1"}),
    ("DELETE", "delete_requests_by_ids", {"request_ids": ["r-1"]}),
    ("DELETE", "delete_profile", {"user_id": "ann", "profile_id": "", "search_query": "tea"}),
    ("DELETE", "delete_profile", {"user_id": "ann", "profile_id": "p-1", "search_query": ""}),
    ("DELETE", "delete_profiles_by_ids", {"profile_ids": ["p-1"]}),
    ("DELETE", "delete_user_playbooks_by_ids", {"user_playbook_ids": [1]}),
    ("DELETE", "delete_agent_playbooks_by_ids", {"agent_playbook_ids": [1]}),
    ("DELETE", "delete_all_interactions", None),
    ("DELETE", "delete_all_profiles", None),
    ("DELETE", "delete_all_user_playbooks", None),
    ("DELETE", "delete_all_agent_playbooks", None),
    ("DELETE", "delete_all_playbooks", None),
    ("GET", "get_config", None),
    ("GET", "whoami", None),
    ("GET", "get_profile_statistics", None),
    ("GET", "storage_stats?user_id=ann", None),
    ("GET", "get_all_interactions?limit=5", None),
    ("GET", "get_operation_status?service_name=profile_generation", None),
    (
        "GET",
        "get_all_profiles?limit=5&user_id=ann&profile_id=p-1&query=tea&source=chat&profile_time_to_live=infinity"
        "&start_time=2026-01-01T00:00:00&end_time=2027-01-01T00:00:00%2B00:00&status_filter=current"
        "&date_field=expiration_timestamp&include_tombstones=true",
        None,
    ),
    ("GET", "get_all_profiles?status_filter=archived&source=", None),
]
CALLS_BY_NUMBER = [
    ("PUT", "update_user_playbook", "user_playbook_id", {"playbook_name": None, "content": "x", "trigger": None}),
    ("PUT", "update_agent_playbook", "agent_playbook_id", {"content": "x", "rationale": None, "playbook_status": None}),
    ("PUT", "update_agent_playbook_status", "agent_playbook_id", {"playbook_status": "approved"}),
    ("DELETE", "delete_user_playbook", "user_playbook_id", {}),
    ("DELETE", "delete_agent_playbook", "agent_playbook_id", {}),
]
NOT_OFFERED = [
    ("POST", "/api/evaluations/regenerate", "evaluation runs"),
    ("GET", "/api/evaluations/regenerate/j-1", "evaluation runs"),
    ("POST", "/api/evaluations/grade_on_demand", "evaluation runs"),
    ("POST", "/api/get_retrieved_learning_evaluation_results", "evaluations of single learnings"),
    ("POST", "/api/session_outcome", "outcomes of sessions"),
    ("POST", "/api/get_session_outcomes", "outcomes of sessions"),
    ("GET", "/api/retrieval_experiments", "retrieval experiments"),
    ("GET", "/api/retrieval_experiments/e-1/results", "retrieval experiments"),
    ("GET", "/api/pending_tool_calls?limit=100", "pending tool calls"),
    ("PATCH", "/api/pending_tool_calls/1/answer", "pending tool calls"),
    ("POST", "/api/rerank_user_profiles", "search_profiles"),
    ("GET", "/api/profile_change_log", "get_learning_provenance"),
    ("POST", "/api/playbook_aggregation_operations", "run_playbook_aggregation"),
    ("POST", "/api/review_user_playbooks", "get_review_queue"),
    ("POST", "/api/admin/cache/invalidate", "a cache"),
    ("GET", "/api/my_config", "get_config"),
]


@pytest.fixture
def learned(client: ReflexioClient) -> ReflexioClient:
    client.add_user_profile([{"profile_id": "p-1", "user_id": "ann", "content": "Likes tea."}])
    client.add_user_playbook([{"user_id": "ann", "agent_version": "v1", "content": "Ask first."}])
    client.add_agent_playbooks([{"agent_version": "v1", "content": "Ask first."}])
    return client


@pytest.mark.usefixtures("learned")
@pytest.mark.parametrize(("method", "path", "sent"), CALLS, ids=[f"{path[:40]}" for _, path, _ in CALLS])
def test_every_field_is_known(http: httpx.Client, method: str, path: str, sent: dict[str, Any] | None) -> None:
    answer = http.request(method, f"/api/{path}", json=sent)
    assert answer.status_code == 200, answer.text
    if path in ("rerun_profile_generation", "rerun_playbook_generation"):
        eventually(lambda: "in_progress" not in http.get(f"/api/get_operation_status?service_name={path[6:]}").text)


@pytest.mark.parametrize(("method", "path", "name", "sent"), CALLS_BY_NUMBER, ids=[row[1] for row in CALLS_BY_NUMBER])
def test_every_field_of_a_call_about_one_playbook_is_known(
    learned: ReflexioClient, http: httpx.Client, method: str, path: str, name: str, sent: dict[str, Any]
) -> None:
    number = (
        learned.get_user_playbooks().user_playbooks[0].user_playbook_id
        if name == "user_playbook_id"
        else learned.get_agent_playbooks().agent_playbooks[0].agent_playbook_id
    )
    answer = http.request(method, f"/api/{path}", json={name: number, **sent})
    assert answer.status_code == 200, answer.text


def test_nothing_is_evaluated_yet(http: httpx.Client, client: ReflexioClient) -> None:
    answer = http.post("/api/get_agent_success_evaluation_results", json={"limit": 100}).json()
    assert (answer["success"], answer["agent_success_evaluation_results"]) == (True, [])
    assert client.get_agent_success_evaluation_results(agent_version="v1").agent_success_evaluation_results == []


@pytest.mark.parametrize(("method", "path", "said"), NOT_OFFERED, ids=[row[1] for row in NOT_OFFERED])
def test_what_is_not_offered_says_so(http: httpx.Client, method: str, path: str, said: str) -> None:
    detail = problem(http.request(method, path, json={}), 404)
    assert "does not offer" in detail
    assert said in detail


def test_another_unknown_path_is_only_named(http: httpx.Client) -> None:
    assert problem(http.get("/api/evaluation"), 404) == "There is no route '/api/evaluation'."
