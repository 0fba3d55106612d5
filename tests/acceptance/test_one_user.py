"""One user is not everybody: on a real server, from teaching to the review."""

from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from reflexio.cli import review
from reflexio.cli.app import app
from reflexio.client.sync import ReflexioClient
from tests.builders import problem
from tests.conftest import Org

TRIGGER = "A parcel is marked delivered but is not there"
ASK = "Ask the neighbours before you start a refund."
AGAIN = "Please ask the neighbours before starting a refund!"
PHOTO = "Ask the neighbours before any refund, and look at the photo that the driver took."


def teach(client: ReflexioClient, user: str, *said: str, **more: Any) -> None:
    rows = [{"user_id": user, "agent_version": "v1", "trigger": TRIGGER, "content": each, **more} for each in said]
    client.add_user_playbook(rows)


def proposed(client: ReflexioClient) -> list[str]:
    client.run_playbook_aggregation(agent_version="v1", wait_for_response=True)
    return [item.taught_by for item in client.get_review_queue(agent_version="v1").items]


def configure(client: ReflexioClient, **aggregator: Any) -> None:
    kind = {"playbook_name": "playbook", "playbook_definition_prompt": "x", "playbook_aggregator_config": aggregator}
    client.update_config({"playbook_configs": [kind]})


@pytest.fixture
def in_terminal(org: Org, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setenv("REFLEXIO_URL", org.url)
    monkeypatch.setenv("REFLEXIO_API_KEY", org.token)
    monkeypatch.setattr(review, "is_terminal", lambda: True)
    return CliRunner()


def test_what_one_user_says_twice_counts_once(client: ReflexioClient) -> None:
    teach(client, "leo", ASK, ASK, AGAIN)
    assert proposed(client) == []
    teach(client, "mia", ASK)
    assert proposed(client) == ["taught by 2 users"]


def test_one_session_counts_once(client: ReflexioClient) -> None:
    published = [client.publish_interaction("leo", [{"content": "hm"}], session_id=each) for each in ("a", "a", "b")]
    for said, publish in zip((ASK, PHOTO), published, strict=False):
        teach(client, "leo", said, request_id=publish.request_id)
    assert proposed(client) == []
    teach(client, "leo", PHOTO, request_id=published[2].request_id)
    assert proposed(client) == ["taught by one user"]


def test_the_review_says_plainly_that_one_user_taught_it(
    client: ReflexioClient, http: httpx.Client, in_terminal: CliRunner
) -> None:
    teach(client, "leo-4711", ASK, PHOTO)
    assert proposed(client) == ["taught by one user"]
    (item,) = http.post("/api/get_review_queue", json={}).json()["items"]
    assert (item["support"], item["taught_by"]) == (1, "taught by one user")
    assert "1 users" not in str(item)
    assert item["agent_playbook"]["rationale"] == "One user taught this."
    assert "leo-4711" not in str({**item, "evidence": []})
    shown = in_terminal.invoke(app, ["review"], input="s\n").output
    assert "Support: taught by one user, in 2 playbooks" in shown
    assert "taught by one user" in in_terminal.invoke(app, ["review", "list"]).output
    assert "1 users" not in shown


def test_a_rule_added_by_hand_has_no_teachers(client: ReflexioClient) -> None:
    client.add_agent_playbooks([{"content": ASK, "agent_version": "v1"}])
    assert proposed(client) == ["added by hand"]


def test_as_many_users_as_the_configuration_asks_for(client: ReflexioClient) -> None:
    configure(client, min_distinct_users=3)
    teach(client, "leo", ASK, PHOTO)
    teach(client, "mia", ASK)
    assert proposed(client) == []
    teach(client, "noa", ASK)
    assert proposed(client) == ["taught by 3 users"]
    assert client.clear_user_data("noa").withdrawn_agent_playbooks == 1
    assert proposed(client) == []


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "two", True])
def test_a_wrong_number_of_users_is_named(http: httpx.Client, wrong: Any) -> None:
    kind = {"playbook_name": "x", "playbook_definition_prompt": "x", "playbook_aggregator_config": {}}
    kind["playbook_aggregator_config"] = {"min_distinct_users": wrong}
    assert "min_distinct_users" in problem(http.post("/api/set_config", json={"playbook_configs": [kind]}), 422)


def test_a_client_that_does_not_know_the_setting_keeps_it(client: ReflexioClient, http: httpx.Client) -> None:
    configure(client, min_distinct_users=3, min_cluster_size=4)
    read = http.get("/api/get_config").json()["user_playbook_extractor_config"]
    known = {name: value for name, value in read["aggregation_config"].items() if name != "min_distinct_users"}
    written = {**read, "aggregation_config": {**known, "reaggregation_trigger_count": 7}}
    written = {name: written[name] for name in ("extractor_name", "extraction_definition_prompt", "aggregation_config")}
    assert http.post("/api/set_config", json={"user_playbook_extractor_config": written}).json()["success"]
    settings = client.get_config().playbook_configs[0].playbook_aggregator_config
    assert (settings.min_distinct_users, settings.min_cluster_size, settings.reaggregation_trigger_count) == (3, 4, 7)
