"""What a context or a search returned is published with the turn as it is, and a bad optional field loses no turn."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from reflexio import AsyncReflexioClient, Citation, InteractionData
from reflexio.client.sync import ReflexioClient
from reflexio.models.interaction import Interaction, RetrievedLearning
from reflexio.models.playbook import AgentPlaybook, UserPlaybook
from reflexio.models.profile import UserProfile
from reflexio.models.search import ContextItem, Explanation
from tests.builders import body, contents
from tests.conftest import Org

AGENT_RULE = ("agent_playbook", "7")


@pytest.fixture
def careful(org: Org) -> Iterator[ReflexioClient]:
    with ReflexioClient(url_endpoint=org.url, api_key=org.token, retries=0, fail_open=True) as client:
        yield client


def shown(turn: Interaction) -> list[tuple[str, str]]:
    return [(learning.kind, learning.learning_id) for learning in turn.retrieved_learnings]


def _learn(client: ReflexioClient) -> None:
    client.add_user_profile([{"profile_id": "p-1", "user_id": "ann", "content": "Is allergic to nuts."}])
    client.add_user_playbook([{"user_id": "ann", "content": "Name the nuts in each dish.", "trigger": "food"}])
    client.add_agent_playbooks([{"content": "Offer the menu first.", "trigger": "food", "playbook_status": "approved"}])


def test_the_items_of_a_context_are_published_as_they_are(client: ReflexioClient, http: httpx.Client) -> None:
    _learn(client)
    context = client.get_context("Which food has nuts?", user_id="ann")
    expected = sorted((item.kind, item.id) for item in context.items)
    assert len(expected) >= 2
    client.publish_interaction("ann", [{"role": "Agent", "content": "a dict", "retrieved_learnings": context.items}])
    client.publish_interaction(
        "ann", [InteractionData(role="Agent", content="a model", retrieved_learnings=context.items)]
    )
    raw = http.post("/api/context", json={"query": "Which food has nuts?", "user_id": "ann"}).json()["items"]
    turn = {"role": "Agent", "content": "JSON", "retrieved_learnings": raw, "citations": raw}
    assert http.post("/api/publish_interaction", json=body(interaction_data_list=[turn])).json()["success"]
    turns = client.get_interactions("ann").interactions
    assert contents(turns) == ["JSON", "a model", "a dict"]
    assert [sorted(shown(turn)) for turn in turns] == [expected] * 3
    assert sorted((citation.kind, citation.real_id) for citation in turns[0].citations) == expected


def test_the_rows_of_a_search_are_published_as_they_are(client: ReflexioClient, http: httpx.Client) -> None:
    _learn(client)
    asked = {"query": "Which food has nuts?", "user_id": "ann"}
    found = client.search(**asked)  # type: ignore[arg-type]
    rows: list[Any] = [*found.profiles, *found.user_playbooks, *found.agent_playbooks]
    expected = [
        ("profile", "p-1"),
        *(("user_playbook", str(row.user_playbook_id)) for row in found.user_playbooks),
        *(("agent_playbook", str(row.agent_playbook_id)) for row in found.agent_playbooks),
    ]
    assert {kind for kind, _ in expected} == {"profile", "user_playbook", "agent_playbook"}
    client.publish_interaction("ann", [{"content": "rows", "retrieved_learnings": rows, "citations": rows}])
    raw = http.post("/api/search", json=asked).json()
    written = [*raw["profiles"], *raw["user_playbooks"], *raw["agent_playbooks"]]
    turn = {"content": "JSON", "retrieved_learnings": written, "citations": written}
    assert http.post("/api/publish_interaction", json=body(interaction_data_list=[turn])).json()["success"]
    for stored in client.get_interactions("ann").interactions:
        assert shown(stored) == expected
        assert [(citation.kind, citation.real_id) for citation in stored.citations] == expected


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "agent_playbook", "learning_id": "7"},
        {"kind": "agent_playbook", "learning_id": 7},
        {"kind": "agent_playbook", "id": "7"},
        {"kind": "agent_playbook", "id": 7, "layer": "always"},
        {"kind": "agent_playbook", "real_id": "7", "title": "Ask first"},
        {"kind": "agent_playbook", "id": "7", "learning_id": "7", "layer": "relevant"},
        {"kind": "agent_playbook", "agent_playbook_id": 7},
        {"agent_playbook_id": 7, "content": "Ask first"},
        RetrievedLearning(kind="agent_playbook", learning_id="7"),
        ContextItem(kind="agent_playbook", id="7", layer="always"),
        AgentPlaybook(agent_playbook_id=7, content="Ask first"),
        Citation(kind="agent_playbook", real_id="7"),
        Explanation(id="7", kind="agent_playbook", score=1.0),
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_way_to_name_a_learning(client: ReflexioClient, given: Any) -> None:
    client.publish_interaction("ann", [{"content": "x", "retrieved_learnings": [given], "citations": [given]}])
    (turn,) = client.get_interactions("ann").interactions
    assert shown(turn) == [AGENT_RULE]
    assert [(citation.kind, citation.real_id) for citation in turn.citations] == [AGENT_RULE]


def test_rows_of_the_other_kinds(client: ReflexioClient) -> None:
    profile = UserProfile(profile_id="p-1", user_id="ann", content="x", last_modified_timestamp=1)
    rows = [profile, UserPlaybook(user_playbook_id=3), {"profile_id": "p-2"}, {"user_playbook_id": 4}]
    client.publish_interaction("ann", [{"content": "x", "retrieved_learnings": rows}])
    (turn,) = client.get_interactions("ann").interactions
    assert shown(turn) == [("profile", "p-1"), ("user_playbook", "3"), ("profile", "p-2"), ("user_playbook", "4")]


@pytest.mark.parametrize(
    "bad",
    [
        {"retrieved_learnings": [{"kind": "rumour", "id": "1"}]},
        {"retrieved_learnings": "everything"},
        {"citations": [{"kind": "profile"}]},
        {"tools_used": [{"tool_name": "look", "tool_data": {"at": object()}}]},
        {"tools_used": [{"tool_name": "look", "tool_data": {"at": "\0"}}]},
        {"user_action": "jump"},
        {"created_at": "yesterday"},
        {"mood": "good"},
    ],
    ids=lambda bad: next(iter(bad)),
)
def test_failing_open_publishes_the_turn_without_a_bad_field(
    careful: ReflexioClient, caplog: pytest.LogCaptureFixture, bad: dict[str, Any]
) -> None:
    with caplog.at_level(logging.WARNING, logger="reflexio.client"):
        response = careful.publish_interaction("ann", [{"content": "Where is my parcel?", **bad}, {"content": "two"}])
    assert response.success, response.message
    assert contents(careful.get_interactions("ann").interactions) == ["two", "Where is my parcel?"]
    (warning,) = response.warnings
    assert f"interactions.0.{next(iter(bad))}" in warning
    assert warning in caplog.text


def test_failing_open_with_a_bad_source_and_session(careful: ReflexioClient) -> None:
    response = careful.publish_interaction("ann", [{"content": "x"}], source="Support Chat", session_id="s" * 300)
    assert response.success
    assert [warning.partition(" ")[0] for warning in response.warnings] == ["source", "session_id"]


def test_failing_open_twice_with_one_key_stores_once(careful: ReflexioClient) -> None:
    turn = {"content": "x", "mood": "good"}
    responses = [careful.publish_interaction("ann", [turn], idempotency_key="k") for _ in range(2)]
    assert responses[0] == responses[1]
    assert len(careful.get_interactions("ann").interactions) == 1


def test_failing_open_in_a_task_that_nobody_waits_for(org: Org, client: ReflexioClient) -> None:
    async def run() -> None:
        async with AsyncReflexioClient(url_endpoint=org.url, api_key=org.token, fail_open=True) as careful:
            bad = {"content": "x", "retrieved_learnings": [{"id": 1}]}
            publishes = [asyncio.create_task(careful.publish_interaction("ann", [bad])) for _ in range(3)]
            await asyncio.gather(*publishes)

    asyncio.run(run())
    assert contents(client.get_interactions("ann").interactions) == ["x"] * 3


@pytest.mark.parametrize(
    "publish",
    [
        lambda client: client.publish_interaction("ann", []),
        lambda client: client.publish_interaction("", [{"content": "x"}]),
        lambda client: client.publish_interaction("ann", [{"content": ""}]),
    ],
)
def test_what_cannot_be_published_at_all_still_says_why(
    careful: ReflexioClient, publish: Callable[[ReflexioClient], Any]
) -> None:
    response = publish(careful)
    assert not response.success
    assert response.message
