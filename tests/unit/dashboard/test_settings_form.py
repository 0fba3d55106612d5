"""The settings as a form: every setting has a field with words, and what a browser sends back is the configuration."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from reflexio.dashboard.pages.settings import SECTIONS
from reflexio.dashboard.settings_form import CLEARED, KNOWN, SettingField, form_of, read_form, words_of
from reflexio.errors import InvalidRequest
from reflexio.models import config as config_models
from reflexio.models.config import MASK, Config, Setting
from reflexio.organisations.configuration import apply_changes

TONE = {"playbook_name": "tone", "playbook_definition_prompt": "How to speak\n\nand when"}
SPEED = {"playbook_name": "speed", "playbook_definition_prompt": "When to hurry"}
MODELS = [
    model
    for model in vars(config_models).values()
    if isinstance(model, type) and issubclass(model, Setting) and model is not Setting
]
FULL = Config.model_validate(
    {
        "agent_context_prompt": "A shop",
        "playbook_configs": [TONE, {**SPEED, "request_sources_enabled": ["chat", "mail"]}],
        "tool_can_use": [{"tool_name": "find", "tool_description": "finds"}],
        "extraction_preset": "long_form",
        "window_size": 25,
        "stride_size": 10,
        "llm_config": {"generation_model_name": "m", "structured_output": "tools", "concurrency": 3},
        "api_key_config": {"openai": {"api_key": "s3cret", "api_base": "https://mine.test/v1"}},
        "daily_token_budget": 1000,
        "context_always_share": 0.5,
        "redaction": ["email", "key"],
        "playbook_optimizer_config": {"enabled": True, "use_merge": False, "assistant_script_args": ["a", "b"]},
    }
)


def send(fields: Sequence[SettingField], **typed: str) -> dict[str, Any]:
    """What a browser sends when somebody changes these inputs."""
    pairs = list(_inputs(fields))
    for name, text in typed.items():
        path = name.replace("__", ".")
        pairs = [pair for pair in pairs if pair[0] != path] + [(path, text)]
    chosen: dict[str, list[str]] = {}
    for path, text in pairs:
        chosen.setdefault(path, []).append(text)
    return read_form(dict(pairs), chosen)


def _inputs(fields: Sequence[SettingField]) -> Iterator[tuple[str, str]]:
    for field in fields:
        yield from _inputs(field.parts)
        yield from _inputs(field.entries)
        yield from [(f"{entry.path}.{KNOWN}", "yes") for entry in field.entries if not entry.is_new]
        match field.kind:
            case "flag":
                yield from [(field.path, "yes")] if field.value else []
            case "choices":
                yield from [(field.path, option) for option in field.options if option in (field.value or [])]
            case "secret":
                yield field.path, ""
                yield from [(f"{field.path}.stored", MASK)] if field.value else []
            case "group" | "entries":
                pass
            case _:
                yield field.path, field.text.replace("\n", "\r\n")


def shown(config: Config) -> dict[str, Any]:
    return config.model_dump(mode="json")


@pytest.mark.parametrize("model", MODELS)
def test_every_setting_has_a_label(model: type[Setting]) -> None:
    for name in model.model_fields:
        assert words_of(model.__name__, name)[0], f"{model.__name__}.{name} has no words in settings_form.toml"


def test_every_setting_is_in_one_section() -> None:
    names = [name for _, _, section in SECTIONS for name in section]
    assert sorted(names) == sorted(Config.model_fields)


@pytest.mark.parametrize("config", [Config(), FULL, Config(playbook_configs=[], profile_extractor_configs=[])])
def test_an_untouched_form_changes_nothing(config: Config) -> None:
    after, _ = apply_changes(config, send(form_of(shown(config))))
    assert after == config


def test_what_is_typed_is_what_is_stored() -> None:
    typed = send(
        form_of(shown(FULL)),
        playbook_configs__0__playbook_definition_prompt="How to greet",
        playbook_configs__1__playbook_aggregator_config__min_distinct_users="3",
        daily_token_budget="",
        context_always_share="1",
        playbook_optimizer_config__use_merge="yes",
    )
    after, _ = apply_changes(FULL, typed)
    assert after.playbook_configs[0].playbook_definition_prompt == "How to greet"
    assert after.playbook_configs[1].playbook_aggregator_config.min_distinct_users == 3
    assert after.daily_token_budget is None
    assert after.context_always_share == 1.0
    assert after.playbook_optimizer_config.use_merge


def test_a_new_entry_is_added_and_one_is_removed() -> None:
    typed = send(
        form_of(shown(FULL)),
        **{
            f"playbook_configs__0__{CLEARED}": "yes",
            "playbook_configs__2__playbook_name": "new",
            "playbook_configs__2__playbook_definition_prompt": "What is new",
        },
    )
    after, _ = apply_changes(FULL, typed)
    assert [entry.playbook_name for entry in after.playbook_configs] == ["speed", "new"]


def test_a_new_entry_with_a_text_needs_a_name() -> None:
    typed = send(form_of(shown(FULL)), playbook_configs__2__playbook_definition_prompt="What is new")
    with pytest.raises(InvalidRequest) as refused:
        apply_changes(FULL, typed)
    assert refused.value.errors[0]["loc"] == ["playbook_configs", 2, "playbook_name"]


def test_an_entry_that_was_emptied_is_a_mistake_and_not_removed() -> None:
    typed = send(form_of(shown(FULL)), playbook_configs__0__playbook_definition_prompt="")
    with pytest.raises(InvalidRequest) as refused:
        apply_changes(FULL, typed)
    assert refused.value.errors[0]["loc"] == ["playbook_configs", 0, "playbook_definition_prompt"]


@pytest.mark.parametrize("text", ["many", "1.5", "-3", "9" * 40])
def test_what_is_no_number_is_refused_by_the_name_of_its_field(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        apply_changes(FULL, send(form_of(shown(FULL)), window_size=text))
    assert refused.value.errors[0]["loc"] == ["window_size"]


def test_a_stored_secret_stays_is_replaced_or_removed() -> None:
    key = "api_key_config.openai.api_key"
    fields = form_of(shown(FULL))
    kept, _ = apply_changes(FULL, send(fields))
    replaced, _ = apply_changes(FULL, send(fields, **{key.replace(".", "__"): "other"}))
    removed, _ = apply_changes(FULL, send(fields, **{f"{key}.{CLEARED}".replace(".", "__"): "yes"}))
    secrets = [
        config.api_key_config and config.api_key_config.openai and config.api_key_config.openai.api_key
        for config in (kept, replaced, removed)
    ]
    assert [secret and secret.get_secret_value() for secret in secrets] == ["s3cret", "other", None]
