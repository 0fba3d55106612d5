"""What becomes of a configuration when changes of every kind arrive."""

from typing import Any

import pytest

from reflexio.errors import InvalidRequest
from reflexio.models import legacy
from reflexio.models.config import MASK, Config
from reflexio.organisations.configuration import apply_changes

TONE = {"playbook_name": "tone", "playbook_definition_prompt": "How to speak", "metadata_definition_prompt": "why"}
SPEED = {"playbook_name": "speed", "playbook_definition_prompt": "When to hurry"}
ENDPOINT = {"model": "m", "api_key": "s3cret", "api_base": "https://mine.test/v1"}


def before(**settings: Any) -> Config:
    return Config.model_validate({"playbook_configs": [TONE, SPEED], **settings})


def shown(config: Config) -> dict[str, Any]:
    """The document that a caller reads, with both names of each list."""
    document = config.model_dump(mode="json")
    return {**legacy.singulars(document), **document}


def prompts(config: Config) -> list[str]:
    return [each.playbook_definition_prompt for each in config.playbook_configs]


# --- one document, two names


def test_an_edit_under_the_singular_name_counts_in_a_whole_document() -> None:
    document = shown(before())
    document["user_playbook_extractor_config"]["extraction_definition_prompt"] = "EDITED"
    document["profile_extractor_config"]["extraction_definition_prompt"] = "ALSO"
    after, _ = apply_changes(before(), document)
    assert prompts(after) == ["EDITED", "When to hurry"]
    assert after.playbook_configs[0].metadata_definition_prompt == "why"
    assert after.profile_extractor_configs[0].extraction_definition_prompt == "ALSO"


def test_an_edit_of_the_list_counts_in_a_whole_document() -> None:
    document = shown(before())
    document["playbook_configs"] = [{**SPEED, "playbook_definition_prompt": "EDITED"}]
    assert prompts(apply_changes(before(), document)[0]) == ["EDITED"]


def test_the_same_edit_under_both_names_is_one() -> None:
    document = shown(before())
    document["user_playbook_extractor_config"]["extraction_definition_prompt"] = "EDITED"
    document["playbook_configs"][0]["playbook_definition_prompt"] = "EDITED"
    assert prompts(apply_changes(before(), document)[0]) == ["EDITED", "When to hurry"]


def test_two_different_edits_are_refused() -> None:
    document = shown(before())
    document["user_playbook_extractor_config"]["extraction_definition_prompt"] = "ONE"
    document["playbook_configs"][0]["playbook_definition_prompt"] = "OTHER"
    with pytest.raises(InvalidRequest, match="user_playbook_extractor_config and playbook_configs were both changed"):
        apply_changes(before(), document)


def test_a_document_without_an_edit_changes_nothing() -> None:
    for config in (before(), before(playbook_configs=[], profile_extractor_configs=[])):
        assert apply_changes(config, shown(config))[0] == config


def test_null_under_the_singular_name_clears_in_a_whole_document() -> None:
    document = {**shown(before()), "user_playbook_extractor_config": None}
    assert prompts(apply_changes(before(), document)[0]) == []


# --- types


@pytest.mark.parametrize(
    "wrong",
    [
        {"window_size": True},
        {"window_size": "20"},
        {"window_size": 20.0},
        {"extraction_idle_timeout_seconds": "60"},
        {"daily_token_budget": "1000"},
        {"playbook_optimizer_config": {"enabled": "yes"}},
        {"playbook_optimizer_config": {"enabled": 1}},
        {"playbook_optimizer_config": {"max_turns": "3"}},
        {"playbook_optimizer_config": {"early_stop_score": "0.5"}},
        {"playbook_optimizer_config": {"webhook_backoff_base_seconds": True}},
        {"playbook_configs": [{**TONE, "allow_manual_trigger": "no"}]},
        {"playbook_configs": [{**TONE, "playbook_aggregator_config": {"min_cluster_size": "4"}}]},
        {"agent_context_prompt": 5},
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="not valid"):
        apply_changes(before(), wrong)


def test_a_whole_number_is_a_number() -> None:
    after, _ = apply_changes(before(), {"playbook_optimizer_config": {"early_stop_score": 1}})
    assert after.playbook_optimizer_config.early_stop_score == 1.0


# --- secrets


@pytest.mark.parametrize(
    ("kept", "sent", "named"),
    [
        (
            {"api_key_config": {"custom_endpoint": ENDPOINT}},
            {"api_key_config": {"custom_endpoint": {**ENDPOINT, "api_key": MASK, "api_base": "http://attacker/v1"}}},
            r"api_key_config\.custom_endpoint\.api_key is masked and api_base is another one",
        ),
        (
            {"api_key_config": {"openai": {"api_key": "s3cret"}}},
            {"api_key_config": {"openai": {"api_key": MASK, "api_base": "http://attacker/v1"}}},
            r"api_key_config\.openai\.api_key is masked",
        ),
        (
            {"api_key_config": {"openai": {"api_key": "s3cret", "api_base": "https://mine.test"}}},
            {"api_key_config": {"openai": {"api_key": MASK, "api_base": None}}},
            r"api_key_config\.openai\.api_key is masked",
        ),
        (
            {"playbook_optimizer_config": {"webhook_url": "https://a.test", "webhook_auth_header": "s3cret"}},
            {"playbook_optimizer_config": {"webhook_url": "https://attacker", "webhook_auth_header": MASK}},
            r"playbook_optimizer_config\.webhook_auth_header is masked and webhook_url is another one",
        ),
        (
            {"playbook_optimizer_config": {"webhook_auth_header": "s3cret"}},
            {"playbook_optimizer_config": {"webhook_url": "https://attacker", "webhook_auth_header": MASK}},
            r"playbook_optimizer_config\.webhook_auth_header is masked",
        ),
    ],
)
def test_a_masked_secret_is_not_sent_to_another_address(kept: dict[str, Any], sent: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        apply_changes(before(**kept), sent)


def test_an_address_that_a_client_has_no_name_for_stays_with_its_key() -> None:
    config = before(api_key_config={"openai": {"api_key": "s3cret", "api_base": "https://mine.test"}})
    assert apply_changes(config, {"api_key_config": {"openai": {"api_key": MASK, "azure_config": None}}})[0] == config


def test_a_masked_secret_stays_where_its_address_stays() -> None:
    config = before(
        api_key_config={"custom_endpoint": ENDPOINT, "openai": {"api_key": "s3cret"}},
        playbook_optimizer_config={"webhook_url": "https://a.test", "webhook_auth_header": "s3cret"},
    )
    assert apply_changes(config, shown(config))[0] == config
    other_model = {"custom_endpoint": {**ENDPOINT, "api_key": MASK, "model": "other"}}
    assert apply_changes(config, {"api_key_config": other_model})[0].api_key_config is not None
    without = {**shown(config)["playbook_optimizer_config"], "webhook_url": None}
    after, _ = apply_changes(config, {"playbook_optimizer_config": without})
    assert after.playbook_optimizer_config.webhook_auth_header is not None
