"""What the published 0.2.32 client sends is understood, and what it reads back is there.

Field names as that client puts them on the wire; it sends every field with every call, also those it does not use.
"""

from typing import Any

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from tests.builders import contents, eventually

TURN = {
    "created_at": 1_790_000_000,
    "role": "User",
    "content": "hello",
    "shadow_content": "",
    "expert_content": "",
    "user_action": "none",
    "user_action_description": "",
    "interacted_image_url": "",
    "image_encoding": "",
    "tools_used": [{"tool_name": "look", "tool_data": {"id": 1}, "status": ""}],
    "citations": [],
    "retrieved_learnings": [],
}
PUBLISH = {
    "request_id": None,
    "user_id": "ann",
    "interaction_data_list": [TURN],
    "source": "chat",
    "agent_version": "agent-v0",
    "session_id": "s1",
    "session_finished": False,
    "skip_aggregation": False,
    "force_extraction": False,
    "evaluation_only": False,
    "override_learning_stall": False,
    "retrieval_experiment_id": None,
    "retrieval_experiment_arm": None,
}
OVERRIDES = {"window_size_override": None, "stride_size_override": None}
UNUSED: dict[str, object] = {
    "storage_config": None,
    "storage_config_test": 0,
    "agent_success_config": {"evaluation_name": "success", "sampling_rate": 0.05},
    "retrieval_experiment_config": None,
    "retrieval_experiment_history": [],
    "retrieval_floor": {"enabled": False, "pool_size": 30, "profile_floor": None},
    "lineage_gc": {"enabled": True, "tombstone_grace_window_days": 90},
    "expiry_reclamation": {"enabled": False},
    "governance_retention": {"audit_events_retention_enabled": False},
    "pending_tool_call_config": {"enabled": False, "hmac_secrets": [], "tool_overrides": {}},
    "skip_should_run_check": False,
    "enable_document_expansion": False,
    "shadow_mode_enabled": False,
    "eval_sample_n_per_stratum": 200,
    "eval_concurrency_limit": 10,
    "shadow_comparison_judge_prompt_version": "v1.1.0",
}


@pytest.fixture
def published(http: httpx.Client) -> str:
    answer = http.post("/api/publish_interaction", params={"wait_for_response": "true"}, json=PUBLISH).json()
    assert answer["success"]
    return str(answer["request_id"])


def _written_back(config: dict[str, Any]) -> dict[str, Any]:
    """What that client makes of a configuration that it has read: it knows one entry of each list."""
    profile, playbook = config["profile_extractor_config"], config["user_playbook_extractor_config"]
    keys = (config["api_key_config"] or {}).get("openai") or {}
    return {
        **UNUSED,
        "agent_context_prompt": config["agent_context_prompt"],
        "tool_can_use": config["tool_can_use"],
        "profile_extractor_config": {
            **{key: profile[key] for key in ("extractor_name", "extraction_definition_prompt", "manual_trigger")},
            "context_prompt": profile["context_prompt"],
            "request_sources_enabled": profile["request_sources_enabled"],
            "tagging_definition_prompt": None,
            "should_extract_profile_prompt_override": None,
            **OVERRIDES,
        },
        "user_playbook_extractor_config": {
            **{key: playbook[key] for key in ("extractor_name", "extraction_definition_prompt", "context_prompt")},
            "aggregation_config": playbook["aggregation_config"],
            "request_sources_enabled": playbook["request_sources_enabled"],
            "tagging_definition_prompt": None,
            "deduplication_config": None,
            **OVERRIDES,
        },
        "extraction_preset": config["extraction_preset"],
        "window_size": config["window_size"],
        "stride_size": config["stride_size"],
        "extraction_idle_timeout_seconds": config["extraction_idle_timeout_seconds"],
        "api_key_config": {"openai": {"api_key": keys["api_key"], "azure_config": None}} if keys else None,
        "llm_config": config["llm_config"],
        "playbook_optimizer_config": config["playbook_optimizer_config"],
    }


def test_aggregating(http: httpx.Client) -> None:
    answer = http.post("/api/run_playbook_aggregation", json={"agent_version": "agent-v0", "playbook_name": "playbook"})
    told = "Processed 0 user playbooks, found 0 clusters, generated 0 agent playbooks"
    assert (answer.json()["success"], answer.json()["message"]) == (True, told)


@pytest.mark.usefixtures("published")
def test_reading(http: httpx.Client) -> None:
    asked = {"user_id": "ann", "start_time": None, "end_time": None, "top_k": 30}
    turn = http.post("/api/get_interactions", json=asked).json()["interactions"][0]
    assert {"interaction_id", "user_id", "request_id", "created_at", "tools_used", "retrieved_learnings"} <= turn.keys()
    everything: dict[str, Any] = dict.fromkeys(("request_id", "session_id", "source", "start_time", "end_time"))
    everything |= {"user_id": "ann", "top_k": 30, "offset": 0}
    session = http.post("/api/get_requests", json=everything).json()["sessions"][0]
    assert session["session_id"] == "s1"
    assert session["requests"][0]["request"]["agent_version"] == "agent-v0"
    assert http.get("/api/get_all_interactions?limit=3").json()["interactions"] == [turn]


def test_questions_about_state(http: httpx.Client, published: str) -> None:
    assert {"org_id", "storage_type", "storage_label", "storage_configured"} <= http.get("/api/whoami").json().keys()
    stats = http.get("/api/storage_stats", params={"user_id": "ann"}).json()
    assert {"profile_count", "playbook_count", "success"} <= stats.keys()
    assert http.get("/api/learning_status", params={"request_id": published}).json()["status"] in (
        "pending",
        "done",
    )
    assert http.get("/api/learning_status", params={"request_id": "none"}).status_code == 404
    assert http.post("/api/finalize_session", json={"user_id": "ann", "session_id": "s1"}).json()["accepted"]


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("profile", {"user_id": None, "start_time": None, "end_time": None, "source": None, "extractor_names": None}),
        ("playbook", {"agent_version": "v1", "start_time": None, "end_time": None, "playbook_name": None}),
    ],
)
def test_a_rerun_is_polled_for_by_its_id(
    http: httpx.Client, client: ReflexioClient, kind: str, asked: dict[str, Any]
) -> None:
    client.publish_interaction("ann", [{"content": "I live in Lisbon."}], agent_version="v1")
    answer = http.post(f"/api/rerun_{kind}_generation", json=asked).json()
    assert answer["success"]
    assert answer["operation_id"] not in ("", f"rerun_{kind}_generation")

    def polled() -> dict[str, Any]:
        found = http.get("/api/get_operation_status", params={"service_name": f"{kind}_generation"}).json()
        return dict(found["operation_status"])

    eventually(lambda: polled()["status"] == "completed")
    assert polled()["request_params"]["operation_id"] == answer["operation_id"]


def test_deleting(http: httpx.Client, client: ReflexioClient, published: str) -> None:
    turn = client.get_interactions("ann").interactions[0].interaction_id
    for path, sent in (
        ("delete_interaction", {"user_id": "ann", "interaction_id": turn}),
        ("delete_request", {"request_id": published}),
        ("delete_session", {"session_id": "s1"}),
        ("delete_requests_by_ids", {"request_ids": [published]}),
        ("delete_all_interactions", None),
    ):
        headers = {"Content-Type": "application/json"}
        answer = http.request("DELETE", f"/api/{path}", json=sent, headers=headers).json()
        assert answer["success"], path
    cleared = http.post("/api/clear_user_data", json={"user_id": "ann"}).json()
    assert {"interactions", "requests", "session_outcomes", "purged_profiles"} <= cleared["deleted_counts"].keys()
    assert contents(client.get_interactions("ann").interactions) == []


def test_writing_back_an_unchanged_configuration_changes_nothing(http: httpx.Client, client: ReflexioClient) -> None:
    tone = {
        "playbook_name": "tone",
        "playbook_definition_prompt": "How to speak",
        "metadata_definition_prompt": "Which mood",
        "allow_manual_trigger": False,
        "playbook_aggregator_config": {"min_cluster_size": 5},
    }
    speed = {"playbook_name": "speed", "playbook_definition_prompt": "How fast"}
    client.set_config(
        {
            "playbook_configs": [tone, speed],
            "api_key_config": {"openai": {"api_key": "sk-1"}},
            "playbook_optimizer_config": {"webhook_url": "http://a", "webhook_auth_header": "Bearer x"},
        }
    )
    before = http.get("/api/get_config").json()
    assert http.post("/api/set_config", json=_written_back(before)).json()["success"]
    assert http.get("/api/get_config").json() == before


def test_a_change_through_the_singular_view_counts(http: httpx.Client, client: ReflexioClient) -> None:
    changed = _written_back(http.get("/api/get_config").json())
    changed["window_size"] = 12
    changed["user_playbook_extractor_config"]["extraction_definition_prompt"] = "Corrections only"
    http.post("/api/set_config", json=changed).raise_for_status()
    found = client.get_config()
    assert (found.window_size, found.stride_size) == (12, 8)
    assert found.playbook_configs[0].playbook_definition_prompt == "Corrections only"


# --- learnings and search: every field of that client's models, nulls included

FACT: dict[str, Any] = {
    "profile_id": "p-1",
    "user_id": "ann",
    "content": "Likes tea",
    "last_modified_timestamp": 1_790_000_000,
    "generated_from_request_id": "cli-manual",
    "profile_time_to_live": "infinity",
    "expiration_timestamp": 4_102_444_800,
    "custom_features": None,
    "source": "cli-manual",
    "status": None,
    "extractor_names": None,
    "expanded_terms": None,
    "tags": None,
    "source_interaction_ids": [],
    "embedding": [],
    "source_span": None,
    "notes": None,
    "reader_angle": None,
    "merged_into": None,
    "superseded_by": None,
}
TAUGHT: dict[str, Any] = {
    "user_playbook_id": 0,
    "user_id": "ann",
    "agent_version": "v1",
    "request_id": "r-1",
    "playbook_name": "",
    "created_at": 1_790_000_000,
    "content": "Serve tea at four",
    "trigger": None,
    "rationale": None,
    "blocking_issue": None,
    "status": None,
    "source": None,
    "source_interaction_ids": [],
    "expanded_terms": None,
    "tags": None,
    "embedding": [],
    "source_span": None,
    "notes": None,
    "reader_angle": None,
    "merged_into": None,
    "superseded_by": None,
}
SHARED: dict[str, Any] = {
    "agent_playbook_id": 0,
    "playbook_name": "",
    "agent_version": "v1",
    "created_at": 1_790_000_000,
    "content": "Tea is free",
    "trigger": None,
    "rationale": None,
    "blocking_issue": None,
    "playbook_status": "pending",
    "playbook_metadata": "",
    "expanded_terms": None,
    "tags": None,
    "embedding": [],
    "status": None,
    "merged_into": None,
    "superseded_by": None,
}
WINDOW = {"start_time": None, "end_time": None}
PLAYBOOKS = {
    "limit": 100,
    "query": None,
    "playbook_name": None,
    "agent_version": None,
    "status_filter": None,
    "tags": None,
    "request_id": None,
    **WINDOW,
}
SEARCH = {"query": "tea", "top_k": 10, "threshold": None, "search_mode": "hybrid"}
SCOPED = {**SEARCH, **WINDOW, "source": None, "tags": None, "enable_reformulation": False, "request_id": None}
SCOPED |= {"session_id": None}
FILTERED = {**SCOPED, "user_id": None, "agent_version": None, "playbook_name": None, "status_filter": None}
UNIFIED = {
    **SEARCH,
    "top_k": 5,
    "agent_version": None,
    "playbook_name": None,
    "user_id": "ann",
    "source": None,
    "tags": None,
    "entity_types": None,
    "agent_playbook_status_filter": None,
    "conversation_history": None,
    "enable_reformulation": False,
    "enable_agent_answer": False,
    "request_id": None,
    "session_id": None,
    "interaction_id": None,
}


@pytest.fixture
def kept(http: httpx.Client) -> dict[str, int]:
    """Learnings that were added as that client adds them, by their numbers."""
    for path, sent in (
        ("add_user_profile", {"user_profiles": [FACT]}),
        ("add_user_playbook", {"user_playbooks": [TAUGHT]}),
        ("add_agent_playbook", {"agent_playbooks": [SHARED]}),
    ):
        answer = http.post(f"/api/{path}", json=sent).json()
        assert (answer["success"], answer["added_count"]) == (True, 1)
    taught = http.post("/api/get_user_playbooks", json={}).json()["user_playbooks"][0]
    shared = http.post("/api/get_agent_playbooks", json={}).json()["agent_playbooks"][0]
    return {"taught": taught["user_playbook_id"], "shared": shared["agent_playbook_id"]}


def test_listing_learnings(http: httpx.Client, kept: dict[str, int]) -> None:
    asked: dict[str, Any] = {"user_id": "ann", "profile_id": None, "query": None, "top_k": 30, "source": None, **WINDOW}
    asked |= {"profile_time_to_live": None, "status_filter": [None], "tags": None}
    (fact,) = http.post("/api/get_profiles", json=asked).json()["user_profiles"]
    shown = ("profile_id", "user_id", "content", "last_modified_timestamp", "generated_from_request_id", "source")
    assert {name: fact[name] for name in shown} == {name: FACT[name] for name in shown}
    everybodys = http.get("/api/get_all_profiles", params={"limit": 100, "status_filter": "current"}).json()
    assert everybodys["user_profiles"] == [fact]
    asked = {**PLAYBOOKS, "user_playbook_id": None, "user_id": None}
    (taught,) = http.post("/api/get_user_playbooks", json=asked).json()["user_playbooks"]
    assert {"user_playbook_id": kept["taught"], "request_id": "r-1", "playbook_name": ""}.items() <= taught.items()
    asked = {**PLAYBOOKS, "agent_playbook_id": None, "playbook_status_filter": None, "session_id": None}
    (shared,) = http.post("/api/get_agent_playbooks", json=asked).json()["agent_playbooks"]
    assert {"agent_playbook_id": kept["shared"], "playbook_status": "pending"}.items() <= shared.items()


def test_searching_learnings(http: httpx.Client, kept: dict[str, int]) -> None:
    scoped = {**SCOPED, "user_id": "ann", "generated_from_request_id": None, "custom_feature": None}
    found = http.post("/api/search_profiles", json={**scoped, "extractor_name": None}).json()
    assert [each["profile_id"] for each in found["user_profiles"]] == ["p-1"]
    found = http.post("/api/search_user_playbooks", json=FILTERED).json()
    assert [each["user_playbook_id"] for each in found["user_playbooks"]] == [kept["taught"]]
    asked = {**FILTERED, "playbook_status_filter": ["pending", "approved"]}
    found = http.post("/api/search_agent_playbooks", json=asked).json()
    assert [each["agent_playbook_id"] for each in found["agent_playbooks"]] == [kept["shared"]]
    turns = {**SEARCH, **WINDOW, "user_id": "ann", "request_id": None, "most_recent_k": None, "top_k": None}
    assert http.post("/api/search_interactions", json=turns).json()["success"]
    found = http.post("/api/search", json=UNIFIED).json()
    assert {"success", "profiles", "agent_playbooks", "user_playbooks", "degraded"} <= found.keys()
    assert [len(found[kind]) for kind in ("profiles", "user_playbooks", "agent_playbooks")] == [1, 1, 0]
    talk = [{"role": "user", "content": "hello"}]
    named = {**UNIFIED, "agent_playbook_status_filter": ["pending"], "conversation_history": talk}
    assert len(http.post("/api/search", json=named).json()["agent_playbooks"]) == 1


def test_changing_and_deleting_learnings(http: httpx.Client, kept: dict[str, int]) -> None:
    texts = {"playbook_name": None, "content": "Serve tea at five", "trigger": None, "rationale": None}
    for path, sent in (
        ("update_user_playbook", {"user_playbook_id": kept["taught"], **texts}),
        ("update_agent_playbook", {"agent_playbook_id": kept["shared"], **texts, "playbook_status": None}),
        ("update_agent_playbook_status", {"agent_playbook_id": kept["shared"], "playbook_status": "approved"}),
    ):
        assert http.put(f"/api/{path}", json=sent).json()["success"], path
    (shared,) = http.post("/api/get_agent_playbooks", json={}).json()["agent_playbooks"]
    assert (shared["content"], shared["playbook_status"]) == ("Serve tea at five", "approved")
    deletions: tuple[tuple[str, dict[str, Any] | None], ...] = (
        ("delete_profile", {"user_id": "ann", "profile_id": "p-1", "search_query": ""}),
        ("delete_user_playbook", {"user_playbook_id": kept["taught"]}),
        ("delete_agent_playbook", {"agent_playbook_id": kept["shared"]}),
        ("delete_profiles_by_ids", {"profile_ids": ["p-1"]}),
        ("delete_user_playbooks_by_ids", {"user_playbook_ids": [kept["taught"]]}),
        ("delete_agent_playbooks_by_ids", {"agent_playbook_ids": [kept["shared"]]}),
        ("delete_all_profiles", None),
        ("delete_all_user_playbooks", None),
        ("delete_all_agent_playbooks", None),
        ("delete_all_playbooks", None),
    )
    for path, which in deletions:
        assert http.request("DELETE", f"/api/{path}", json=which).json()["success"], path
