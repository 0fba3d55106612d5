"""The configuration as a value."""

from typing import Any

import pytest
from pydantic import ValidationError

from reflexio import Config, PlaybookConfig, PlaybookOptimizerConfig, ProfileExtractorConfig
from reflexio.models import legacy

TONE = {"playbook_name": "tone", "playbook_definition_prompt": "How to speak"}


def test_assigned_dicts_become_models() -> None:
    config = Config()
    config.playbook_configs = [TONE]  # type: ignore[list-item]
    assert config.playbook_configs == [PlaybookConfig.model_validate(TONE)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window_size", 0),
        ("window_size", "x"),
        ("playbook_configs", [{"a": 1}]),
        ("extraction_preset", "none"),
        ("x", 1),
    ],
)
def test_what_is_assigned_is_validated_at_once(name: str, value: Any) -> None:
    with pytest.raises((ValidationError, ValueError)):
        setattr(Config(), name, value)


def test_two_configurations_share_nothing() -> None:
    one, other = Config(), Config()
    one.playbook_configs.clear()
    one.playbook_optimizer_config.enabled = True
    one.tool_can_use.append(None)  # type: ignore[arg-type]
    assert other.playbook_configs
    assert not other.playbook_optimizer_config.enabled
    assert other.tool_can_use == []
    assert not Config().playbook_optimizer_config.enabled


def test_two_playbook_types_share_no_aggregator() -> None:
    one, other = PlaybookConfig.model_validate(TONE), PlaybookConfig.model_validate(TONE)
    one.playbook_aggregator_config.min_cluster_size = 9
    assert other.playbook_aggregator_config.min_cluster_size == 2


def test_secrets_are_written_only_on_purpose() -> None:
    config = Config.model_validate(
        {"api_key_config": {"custom_endpoint": {"model": "m", "api_key": "s3cret", "api_base": "b"}}}
    )
    for text in (repr(config), str(config), config.model_dump_json(), str(config.model_dump())):
        assert "s3cret" not in text
    assert "s3cret" in config.model_dump_json(context={"reveal": True})


@pytest.mark.parametrize(("old", "new"), legacy.PLAYBOOK_NAMES.items())
def test_old_names_of_a_playbook_type_are_read(old: str, new: str) -> None:
    value: Any = {"min_cluster_size": 7} if new.endswith("config") else "given"
    found = PlaybookConfig.model_validate(
        {"playbook_definition_prompt": "x", old: value} if new != "playbook_definition_prompt" else {old: value}
    )
    assert found.model_dump(exclude_unset=True)[new] == value


@pytest.mark.parametrize(("old", "new"), legacy.PROFILE_NAMES.items())
def test_old_names_of_a_profile_extractor_are_read(old: str, new: str) -> None:
    assert getattr(ProfileExtractorConfig.model_validate({old: "given"}), new) == "given"


@pytest.mark.parametrize(("old", "new"), legacy.SIZES.items())
def test_old_names_of_the_sizes_are_read(old: str, new: str) -> None:
    assert getattr(Config.model_validate({old: 9}), new) == 9


@pytest.mark.parametrize(("old", "new"), legacy.PLURALS.items())
def test_old_names_of_the_lists_are_read(old: str, new: str) -> None:
    entry = {"extraction_definition_prompt": "given"}
    for value in (entry, [entry]):
        assert len(getattr(Config.model_validate({old: value}), new)) == 1
    assert getattr(Config.model_validate({old: None}), new) == []


def test_the_new_name_counts_where_both_are_given() -> None:
    both = {"playbook_name": "new", "extractor_name": "old", "playbook_definition_prompt": "x"}
    assert PlaybookConfig.model_validate(both).playbook_name == "new"


@pytest.mark.parametrize("name", sorted(legacy.ROOT_RETIRED))
def test_retired_names_are_accepted_and_dropped(name: str) -> None:
    assert name not in Config.model_validate({name: None}).model_dump()


def test_an_optimiser_speaks_to_one_assistant() -> None:
    with pytest.raises(ValidationError, match="not both"):
        PlaybookOptimizerConfig(webhook_url="http://a", assistant_script_path="/b")


# --- names of earlier releases, as attributes


def both() -> Config:
    return Config.model_validate({"playbook_configs": [TONE, {**TONE, "playbook_name": "speed"}]})


def test_the_singular_names_are_the_first_entries() -> None:
    config = both()
    assert config.user_playbook_extractor_config is config.playbook_configs[0]
    assert config.profile_extractor_config is config.profile_extractor_configs[0]
    empty = Config(playbook_configs=[], profile_extractor_configs=[])
    assert (empty.user_playbook_extractor_config, empty.profile_extractor_config) == (None, None)


def test_old_names_are_read_and_assigned_as_attributes() -> None:
    config: Any = both()
    config.user_playbook_extractor_config.extraction_definition_prompt = "EDITED"
    config.user_playbook_extractor_config.aggregation_config.min_feedback_threshold = 5
    config.batch_size = 30
    first = config.playbook_configs[0]
    assert (first.playbook_definition_prompt, first.extraction_definition_prompt) == ("EDITED", "EDITED")
    assert first.playbook_aggregator_config.min_cluster_size == 5
    assert (config.window_size, config.batch_size, config.extraction_window_size) == (30, 30, 30)
    assert config.agent_feedback_configs is config.playbook_configs


def test_an_assigned_singular_takes_the_place_of_the_first_entry() -> None:
    config = both()
    config.user_playbook_extractor_config = {"extraction_definition_prompt": "EDITED"}
    assert [each.playbook_name for each in config.playbook_configs] == ["tone", "speed"]
    assert config.playbook_configs[0].playbook_definition_prompt == "EDITED"
    config.user_playbook_extractor_config = PlaybookConfig(playbook_name="new", playbook_definition_prompt="x")
    assert [each.playbook_name for each in config.playbook_configs] == ["new", "speed"]
    config.user_playbook_extractor_config = None
    assert config.playbook_configs == []
    config.user_playbook_extractor_config = {"extraction_definition_prompt": "again"}
    assert config.playbook_configs[0].playbook_definition_prompt == "again"
    config.profile_extractor_config = {"extraction_definition_prompt": "Who they are"}
    assert config.profile_extractor_configs[0].extraction_definition_prompt == "Who they are"
    assert {"playbook_configs", "profile_extractor_configs"} <= config.model_fields_set


def test_what_is_assigned_under_an_old_name_is_validated_too() -> None:
    config = Config()
    for name, value in (("batch_size", 0), ("user_playbook_extractor_config", {"colour": 1})):
        with pytest.raises(ValidationError):
            setattr(config, name, value)


def test_a_retired_name_has_no_value_and_takes_none() -> None:
    config: Any = Config()
    config.storage_config = None
    with pytest.warns(UserWarning, match="storage_config is not used by this server"):
        config.storage_config = {"type": "sqlite"}
    assert config.storage_config is None
    assert "storage_config" not in config.model_dump()


def test_a_name_that_nobody_knows_is_still_an_error() -> None:
    config: Any = Config()
    with pytest.raises(AttributeError, match="colour"):
        _ = config.colour
    with pytest.raises(ValidationError):
        config.colour = 1
