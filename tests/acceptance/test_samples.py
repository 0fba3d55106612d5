"""The samples of our guides run as printed, on a real server."""

from collections.abc import Iterator
from typing import Any

import pytest

from reflexio.client.sync import ReflexioClient
from tests.acceptance import samples
from tests.conftest import Org, Running


def run(sample: str, **given: Any) -> dict[str, Any]:
    """The names that a sample leaves behind."""
    names = dict(given)
    exec(compile(sample, "<sample>", "exec"), names)  # noqa: S102  it is our own text
    return names


@pytest.fixture
def sampled(org: Org, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReflexioClient]:
    """The client of the set-up sample, which knows server and key from the environment."""
    monkeypatch.setenv("REFLEXIO_URL", org.url)
    monkeypatch.setenv("REFLEXIO_API_KEY", org.token)
    client: ReflexioClient = run(samples.SETUP)["client"]
    with client:
        yield client


def test_set_up_reads_the_environment(sampled: ReflexioClient, org: Org) -> None:
    assert sampled.whoami().org_id == org.id


def test_set_up_self_hosted(open_server: Running) -> None:
    port = open_server.url.rpartition(":")[2]
    sample = samples.SETUP.replace("client = ReflexioClient()", "").replace("# Self-hosted: ", "").replace("8081", port)
    with run(sample)["client"] as client:
        assert client.endpoint.url == f"http://localhost:{port}"
        assert client.whoami().org_id == "default"


@pytest.mark.parametrize(
    ("sample", "types"),
    [
        (samples.BASIC_CONFIGURATION, ["customer_satisfaction"]),
        (samples.MULTIPLE_TYPES, ["response_quality", "task_completion", "user_sentiment"]),
        (samples.AGGREGATION, ["pain_points"]),
        (samples.ECOMMERCE, ["order_resolution", "product_recommendations", "checkout_assistance"]),
        (samples.TECHNICAL, ["troubleshooting_effectiveness", "technical_accuracy", "documentation_referrals"]),
        (samples.HEALTHCARE, ["symptom_understanding", "guidance_appropriateness", "empathy_and_support"]),
    ],
    ids=["basic", "multiple", "aggregation", "e-commerce", "technical", "healthcare"],
)
def test_configuration_shows_what_was_set(sampled: ReflexioClient, sample: str, types: list[str]) -> None:
    names = run(sample, client=sampled)

    stored = sampled.get_config().playbook_configs

    assert [each.playbook_name for each in stored] == types
    printed = next(entries for value in names.values() if (entries := _entries(value, types)))
    for wanted, found in zip(printed, stored, strict=True):
        for key, value in wanted.items():
            assert _as_printed(getattr(found, key), value)


def _entries(value: Any, types: list[str]) -> list[dict[str, Any]]:
    """The playbook types that a sample's variable holds, one or many; none when they are not the wanted ones."""
    entries = value if isinstance(value, list) else [value]
    named = [each["playbook_name"] for each in entries if isinstance(each, dict) and "playbook_name" in each]
    return entries if named == types else []


def _as_printed(found: Any, printed: Any) -> bool:
    if isinstance(printed, dict):
        return all(_as_printed(getattr(found, key), value) for key, value in printed.items())
    return bool(found.strip() == printed.strip() if isinstance(printed, str) else found == printed)


def test_good_definition_is_a_playbook_type(sampled: ReflexioClient) -> None:
    good = run(samples.GOOD_DEFINITION)["good_config"]
    sampled.set_config({"playbook_configs": [good]})
    assert sampled.get_config().playbook_configs[0].playbook_name == "response_helpfulness"


@pytest.mark.parametrize(("volume", "sizes"), [("high_volume_config", (10, 20)), ("low_volume_config", (3, 5))])
def test_thresholds_are_aggregator_settings(sampled: ReflexioClient, volume: str, sizes: tuple[int, int]) -> None:
    thresholds = run(samples.THRESHOLDS)[volume]
    entry = {"playbook_name": "a", "playbook_definition_prompt": "b", "playbook_aggregator_config": thresholds}
    sampled.set_config({"playbook_configs": [entry]})
    stored = sampled.get_config().playbook_configs[0].playbook_aggregator_config
    assert (stored.min_cluster_size, stored.reaggregation_trigger_count) == sizes


def test_publish_answers_with_ids_and_stores_three_turns(sampled: ReflexioClient) -> None:
    response = run(samples.PUBLISH, client=sampled)["response"]

    assert response.success
    assert response.session_id
    stored = sampled.get_requests(request_id=response.request_id).sessions[0].requests[0]
    assert (stored.request.source, stored.request.agent_version) == ("support_chat", "v2.1.0")
    assert [turn.role for turn in stored.interactions] == ["User", "Agent", "User"]
    assert stored.interactions[2].content == "Perfect, that worked! Thanks!"


def test_multi_turn_publish_keeps_order_and_session(sampled: ReflexioClient) -> None:
    conversation = run(samples.MULTI_TURN, client=sampled)["conversation"]

    session = sampled.get_requests(session_id="order_issues_batch_001").sessions[0]

    stored = session.requests[0].interactions
    assert [(turn.role, turn.content) for turn in stored] == [(each["role"], each["content"]) for each in conversation]


def test_expert_publish_keeps_the_expert_answer(sampled: ReflexioClient) -> None:
    run(samples.EXPERT, client=sampled)

    agent, user = sampled.get_interactions("user_789").interactions

    assert agent.expert_content.startswith("To reset your password: 1) Go to Settings")
    assert user.expert_content == ""


def test_clear_user_data_prints_true_counts(sampled: ReflexioClient, capsys: pytest.CaptureFixture[str]) -> None:
    run(samples.PUBLISH, client=sampled)
    run(samples.MULTI_TURN, client=sampled)

    counts = run(samples.CLEAR_USER_DATA, client=sampled)["response"].deleted_counts

    assert {name: count for name, count in counts.items() if count} == {
        "interactions": 3,
        "requests": 1,
        "user_playbooks": 1,
    }
    assert capsys.readouterr().out == f"{counts}\n"
    assert len(sampled.get_interactions("customer_456").interactions) == 7


def _told(client: ReflexioClient, user: str, **more: Any) -> None:
    said = ["I live in Lisbon.", "Noted.", "Don't use bullet points from now on."]
    turns = [{"role": "Agent" if place % 2 else "User", "content": each} for place, each in enumerate(said)]
    client.publish_interaction(user, turns, agent_version="v2.1.0", **more)


def test_rerun_and_upgrade_of_profiles(sampled: ReflexioClient) -> None:
    for user in ("user_123", "user_456"):
        _told(sampled, user)
    response = run(samples.RERUN_PROFILES, client=sampled)["response"]
    assert (response.success, response.profiles_generated) == (True, 1)
    assert response.operation_id
    upgraded = run(samples.UPGRADE_PROFILES, client=sampled)["response"]
    assert (upgraded.success, upgraded.profiles_promoted) == (True, 1)
    assert len(sampled.get_profiles("user_123").user_profiles) == 1
    assert sampled.get_profiles("user_456", status_filter=["pending"]).user_profiles == []


def test_rerun_and_upgrade_of_playbooks(sampled: ReflexioClient) -> None:
    _told(sampled, "user_123")
    response = run(samples.RERUN_PLAYBOOKS, client=sampled)["response"]
    assert (response.success, response.playbooks_generated) == (True, 1)
    upgraded = run(samples.UPGRADE_PLAYBOOKS, client=sampled)["response"]
    assert (upgraded.success, upgraded.user_playbooks_promoted) == (True, 1)


def test_generation_by_hand(sampled: ReflexioClient) -> None:
    _told(sampled, "user_123")
    _told(sampled, "user_456", source="chat")
    run(samples.MANUAL_PROFILES, client=sampled)
    run(samples.MANUAL_PLAYBOOKS, client=sampled)
    sampled.flush()
    for user in ("user_123", "user_456"):
        assert len(sampled.get_profiles(user).user_profiles) == 1
        assert len(sampled.get_user_playbooks(user_id=user, agent_version="v2.1.0").user_playbooks) == 1
