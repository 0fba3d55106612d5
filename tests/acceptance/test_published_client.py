"""What the published 0.2.32 client sends is understood, and what it reads back is there.

Field names as that client puts them on the wire; it sends every field with every call, also those it does not use.
"""

from typing import Any

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from tests.builders import contents

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
    assert http.get("/api/learning_status", params={"request_id": published}).json()["status"] == "pending"
    assert http.get("/api/learning_status", params={"request_id": "none"}).status_code == 404
    assert http.post("/api/finalize_session", json={"user_id": "ann", "session_id": "s1"}).json()["accepted"]


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
    assert {"interactions", "requests", "profiles", "user_playbooks"} <= cleared["deleted_counts"].keys()
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
