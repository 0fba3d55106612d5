"""The configuration goes in and comes out the same, in every form that a caller may use."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from reflexio import AsyncReflexioClient, Config, PlaybookConfig, PlaybookOptimizerConfig
from reflexio.client.sync import ReflexioClient
from reflexio.errors import InvalidRequest
from tests.builders import on_database, problem
from tests.conftest import Org, Running

TONE = {"playbook_name": "tone", "playbook_definition_prompt": "How to speak"}
SPEED = {"playbook_name": "speed", "playbook_definition_prompt": "How fast"}


def stored(server: Running, org: Org) -> dict[str, Any]:
    """The document in the database, with its secrets."""
    document = on_database(server.folder, lambda database: database.of(org.id).read(lambda tx: tx.configs.get()))
    assert document is not None
    return dict(json.loads(document))


MASK = "**********"


def names(config: Config) -> list[str]:
    return [each.playbook_name for each in config.playbook_configs]


def test_a_new_organisation_learns_profiles_and_playbooks(client: ReflexioClient) -> None:
    config = client.get_config()
    assert (len(config.profile_extractor_configs), names(config)) == (1, ["playbook"])
    assert (config.window_size, config.stride_size) == (10, 8)


@pytest.mark.parametrize(
    "changes",
    [
        {"playbook_configs": [TONE, SPEED]},
        {"playbook_configs": [PlaybookConfig(**TONE), PlaybookConfig(**SPEED)]},
        Config(playbook_configs=[PlaybookConfig(**TONE), PlaybookConfig(**SPEED)]),
    ],
    ids=["dicts", "models in a dict", "model"],
)
def test_set_config_takes_every_form(client: ReflexioClient, changes: Any) -> None:
    assert client.set_config(changes).success
    assert names(client.get_config()) == ["tone", "speed"]


def test_attributes_can_be_assigned(client: ReflexioClient) -> None:
    config = client.get_config()
    config.agent_context_prompt = "A shop for lamps"
    config.window_size = 20
    config.playbook_optimizer_config.enabled = True
    client.set_config(config)
    found = client.get_config()
    assert (found.agent_context_prompt, found.window_size) == ("A shop for lamps", 20)
    assert found.playbook_optimizer_config.enabled


def test_what_get_config_returns_can_be_set_unchanged(client: ReflexioClient) -> None:
    client.set_config({"playbook_configs": [TONE, SPEED], "extraction_preset": "long_form"})
    before = client.get_config()
    client.set_config(before.model_dump())
    client.set_config(before.model_dump(mode="json"))
    client.set_config(before)
    assert client.get_config() == before


async def test_the_asynchronous_client_configures_too(org: Org) -> None:
    async with AsyncReflexioClient(org.token, org.url) as client:
        config = await client.get_config()
        config.playbook_configs = [PlaybookConfig(**TONE)]
        await client.set_config(config)
        assert names(await client.get_config()) == ["tone"]


def test_an_absent_key_keeps_its_value(client: ReflexioClient) -> None:
    client.set_config({"playbook_configs": [TONE], "agent_context_prompt": "A shop"})
    client.set_config({"window_size": 12})
    found = client.get_config()
    assert (names(found), found.agent_context_prompt, found.window_size) == (["tone"], "A shop", 12)


@pytest.mark.parametrize("nothing", [None, []])
def test_null_and_empty_lists_clear(client: ReflexioClient, nothing: Any) -> None:
    client.set_config({"playbook_configs": [TONE], "tool_can_use": [{"tool_name": "a", "tool_description": "b"}]})
    client.set_config({"playbook_configs": nothing, "profile_extractor_configs": nothing, "tool_can_use": nothing})
    found = client.get_config()
    assert (found.playbook_configs, found.profile_extractor_configs, found.tool_can_use) == ([], [], [])


def test_null_resets_what_must_have_a_value(client: ReflexioClient) -> None:
    client.set_config({"window_size": 50, "stride_size": 40, "playbook_optimizer_config": {"enabled": True}})
    client.set_config({"window_size": None, "stride_size": None, "playbook_optimizer_config": None})
    found = client.get_config()
    assert (found.window_size, found.stride_size, found.playbook_optimizer_config.enabled) == (10, 8, False)


def test_null_clears_a_text(client: ReflexioClient) -> None:
    client.set_config({"agent_context_prompt": "A shop", "llm_config": {"generation_model_name": "ollama:m"}})
    client.set_config({"agent_context_prompt": None, "llm_config": None})
    found = client.get_config()
    assert (found.agent_context_prompt, found.llm_config) == (None, None)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"windowsize": 3}, "windowsize"),
        ({"playbook_configs": [{**TONE, "colour": 1}]}, "playbook_configs.0.colour"),
        (
            {"playbook_configs": [{**TONE, "playbook_aggregator_config": {"size": 1}}]},
            "playbook_aggregator_config.size",
        ),
        ({"playbook_optimizer_config": {"enable": True}}, "playbook_optimizer_config.enable"),
        (
            {"profile_extractor_configs": [{"extraction_definition_prompt": "x", "y": 1}]},
            "profile_extractor_configs.0.y",
        ),
        ({"llm_config": {"model": "x"}}, "llm_config.model"),
        ({"api_key_config": {"acme": {"api_key": "x"}}}, "api_key_config.acme"),
        ({"user_playbook_extractor_config": {"extraction_definition_prompt": "x", "why": 1}}, "why"),
    ],
)
def test_unknown_keys_are_named_and_nothing_is_stored(
    client: ReflexioClient, changes: dict[str, Any], named: str
) -> None:
    before = client.get_config()
    with pytest.raises(InvalidRequest, match=named.replace(".", r"\.")):
        client.set_config({**changes, "agent_context_prompt": "stored by half"})
    assert client.get_config() == before


@pytest.mark.parametrize(
    "changes",
    [
        {"window_size": 0},
        {"window_size": 1001},
        {"window_size": "many"},
        {"window_size": 5, "stride_size": 6},
        {"stride_size": 11},
        {"extraction_preset": "huge"},
        {"playbook_configs": [TONE, TONE]},
        {"playbook_configs": [{"playbook_name": "x"}]},
        {"playbook_configs": [{**TONE, "playbook_definition_prompt": "  "}]},
        {"playbook_configs": [TONE] * 101},
        {"playbook_configs": "tone"},
        {"playbook_optimizer_config": {"webhook_url": "http://a", "assistant_script_path": "/b"}},
        {"playbook_optimizer_config": {"min_commit_score": 1.5}},
    ],
)
def test_values_out_of_range_are_refused(client: ReflexioClient, changes: dict[str, Any]) -> None:
    before = client.get_config()
    with pytest.raises(InvalidRequest, match=r"\w"):
        client.set_config(changes)
    assert client.get_config() == before


@pytest.mark.parametrize(
    ("preset", "sizes"),
    [("quick_chat", (5, 3)), ("standard", (10, 8)), ("long_form", (25, 10)), ("high_volume", (15, 8))],
)
def test_presets_set_window_and_stride(client: ReflexioClient, preset: str, sizes: tuple[int, int]) -> None:
    client.set_config({"extraction_preset": preset})
    found = client.get_config()
    assert (found.window_size, found.stride_size) == sizes


def test_own_sizes_win_over_the_preset(client: ReflexioClient) -> None:
    client.set_config({"extraction_preset": "long_form", "window_size": 40})
    found = client.get_config()
    assert (found.window_size, found.stride_size) == (40, 10)


def test_a_smaller_window_takes_the_stride_along_and_says_so(client: ReflexioClient) -> None:
    answer = client.set_config({"window_size": 4})
    found = client.get_config()
    assert (found.window_size, found.stride_size) == (4, 4)
    assert "stride_size lowered to 4" in (answer.msg or "")


def test_secrets_are_masked_and_survive_a_round_trip(
    client: ReflexioClient, org: Org, server: Running, http: httpx.Client
) -> None:
    client.set_config(
        {
            "api_key_config": {"openai": {"api_key": "sk-secret"}},
            "playbook_optimizer_config": {"webhook_url": "http://a", "webhook_auth_header": "Bearer secret"},
        }
    )
    shown = http.get("/api/get_config").text
    assert "secret" not in shown
    assert shown.count(MASK) == 2

    config = client.get_config()
    config.window_size = 11
    client.set_config(config)
    client.set_config(client.get_config().model_dump())

    assert stored(server, org)["api_key_config"]["openai"]["api_key"] == "sk-secret"
    assert stored(server, org)["playbook_optimizer_config"]["webhook_auth_header"] == "Bearer secret"


def test_a_mask_without_a_secret_behind_it_is_refused(client: ReflexioClient) -> None:
    with pytest.raises(InvalidRequest, match=r"api_key_config\.openai\.api_key"):
        client.set_config({"api_key_config": {"openai": {"api_key": MASK}}})


def test_secrets_in_models_are_stored(client: ReflexioClient, org: Org, server: Running) -> None:
    config = client.get_config()
    config.playbook_optimizer_config = PlaybookOptimizerConfig.model_validate({"webhook_auth_header": "Bearer hidden"})
    client.set_config(config)
    assert stored(server, org)["playbook_optimizer_config"]["webhook_auth_header"] == "Bearer hidden"
    assert "hidden" not in repr(client.get_config())


def test_singular_names_change_the_first_entry_only(client: ReflexioClient, http: httpx.Client) -> None:
    client.set_config({"playbook_configs": [TONE, SPEED]})
    seen = http.get("/api/get_config").json()
    assert seen["user_playbook_extractor_config"]["extraction_definition_prompt"] == "How to speak"
    assert seen["user_playbook_extractor_config"]["extractor_name"] == "tone"

    entry = {"extraction_definition_prompt": "Speak gently", "aggregation_config": {"min_cluster_size": 4}}
    profile = {"extraction_definition_prompt": "Who they are"}
    changes = {"user_playbook_extractor_config": entry, "profile_extractor_config": profile}
    assert http.post("/api/set_config", json=changes).json()["success"]

    found = client.get_config()
    assert names(found) == ["tone", "speed"]
    assert found.playbook_configs[0].playbook_definition_prompt == "Speak gently"
    assert found.playbook_configs[0].playbook_aggregator_config.min_cluster_size == 4
    assert found.profile_extractor_configs[0].extraction_definition_prompt == "Who they are"


def test_null_for_a_singular_name_clears_the_list(client: ReflexioClient, http: httpx.Client) -> None:
    http.post("/api/set_config", json={"user_playbook_extractor_config": None}).raise_for_status()
    assert client.get_config().playbook_configs == []


def test_old_names_inside_an_entry_are_read(client: ReflexioClient, http: httpx.Client) -> None:
    entry = {
        "feedback_name": "tone",
        "feedback_definition_prompt": "How to speak",
        "feedback_aggregator_config": {"min_feedback_threshold": 6, "refresh_count": 7},
    }
    changes = {"agent_feedback_configs": [entry], "batch_size": 30, "batch_interval": 20}
    http.post("/api/set_config", json=changes).raise_for_status()
    found = client.get_config()
    aggregator = found.playbook_configs[0].playbook_aggregator_config
    assert (names(found), found.window_size, found.stride_size) == (["tone"], 30, 20)
    assert (aggregator.min_cluster_size, aggregator.reaggregation_trigger_count) == (6, 7)


def test_retired_names_are_accepted_and_named_as_unused(http: httpx.Client) -> None:
    changes = {"storage_config": None, "lineage_gc": {"enabled": True}, "skip_should_run_check": True}
    answer = http.post("/api/update_config", json=changes).json()
    assert answer["success"]
    assert answer["msg"].endswith("not used by this server: lineage_gc, skip_should_run_check")


def test_update_config_takes_only_dicts(client: ReflexioClient) -> None:
    with pytest.raises(TypeError, match="set_config takes a Config"):
        client.update_config(Config())  # type: ignore[arg-type]


def test_each_organisation_has_its_own(make_org: Any) -> None:
    first, second = make_org(), make_org()
    with first.client() as one, second.client() as other:
        one.set_config({"playbook_configs": [TONE]})
        assert names(other.get_config()) == ["playbook"]


def test_changes_at_the_same_time_all_count(org: Org) -> None:
    async def change() -> Config:
        async with AsyncReflexioClient(org.token, org.url) as client:
            await asyncio.gather(
                client.set_config({"window_size": 33}),
                client.set_config({"agent_context_prompt": "A shop"}),
                client.set_config({"playbook_configs": [TONE]}),
            )
            return await client.get_config()

    found = asyncio.run(change())
    assert (found.window_size, found.agent_context_prompt, names(found)) == (33, "A shop", ["tone"])


@pytest.mark.parametrize("sent", [[], "text", 3, None])
def test_a_configuration_is_an_object(http: httpx.Client, sent: Any) -> None:
    problem(http.post("/api/set_config", json=sent), 422)
