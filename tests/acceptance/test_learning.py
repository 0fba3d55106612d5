"""Learning on a real server without a model: what is published is learned, once, and with proof."""

from collections.abc import Callable
from typing import Any

import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.models.playbook import UserPlaybook
from reflexio.models.profile import UserProfile
from reflexio.ports.storage import LearnedWindow
from tests.acceptance import samples
from tests.acceptance.test_samples import run
from tests.builders import eventually, name, on_database, turns
from tests.conftest import Org, Running

ORDER = "No, always check with the neighbours first."
FACT = "I am vegetarian, by the way."
TYPES = {"response_quality", "task_completion", "user_sentiment"}
Windows = Callable[[str], list[LearnedWindow]]


@pytest.fixture
def windows(server: Running, org: Org) -> Windows:
    """What the database says of a user's windows."""

    def look(user: str) -> list[LearnedWindow]:
        return on_database(
            server.folder,
            lambda database: database.of(org.id).read(lambda tx: tx.windows.of_turns(user, range(1, 100_000))),
        )

    return look


def small_talk(count: int) -> list[dict[str, Any]]:
    said = ["Hello there!", "Hello, how can I help?", "What a day.", "Indeed."]
    return turns(*(said[place % 4] for place in range(count)))


def facts(client: ReflexioClient, user: str, *status: str) -> list[UserProfile]:
    return client.get_profiles(user, status_filter=list(status or ("current",)), force_refresh=True).user_profiles


def rules(client: ReflexioClient, user: str) -> list[UserPlaybook]:
    return client.get_user_playbooks(user_id=user).user_playbooks


@pytest.mark.parametrize("count", [3, 7, 25])
def test_a_waited_publish_learns_all_that_was_sent_and_tells_true_counts(
    client: ReflexioClient, windows: Windows, count: int
) -> None:
    said = small_talk(count)
    said[0]["content"], said[-1]["content"], said[-1]["role"] = ORDER, FACT, "User"

    answer = client.publish_interaction("ann", said, wait_for_response=True)

    assert (answer.learning_status, answer.profiles_added, answer.playbooks_added) == ("done", 1, 1)
    assert [len(facts(client, "ann")), len(rules(client, "ann"))] == [1, 1]
    learned = [turn for each in windows("ann") for turn in each.turn_ids]
    assert len(learned) == len(set(learned)) == count
    assert client.get_learning_status(answer.request_id or "") == "done"


def test_a_waited_publish_is_counted_by_its_caller_also_when_earlier_turns_wait(
    client: ReflexioClient, windows: Windows
) -> None:
    client.update_config({"extraction_idle_timeout_seconds": 0})
    for _ in range(3):
        client.publish_interaction("ann", small_talk(2))
    answer = client.publish_interaction("ann", turns(FACT, "Noted.", ORDER, "Yes."), wait_for_response=True)
    assert (answer.profiles_added, answer.playbooks_added) == (1, 1)
    (window,) = [each for each in windows("ann") if sum(each.counts.values())]
    assert len(window.turn_ids) == 4


@pytest.mark.parametrize(
    ("sample", "user", "types"),
    [
        (samples.PUBLISH, "user_123", TYPES),
        (samples.MULTI_TURN, "customer_456", TYPES),
        (samples.EXPERT, "user_789", TYPES),
    ],
    ids=["password", "order", "expert"],
)
def test_the_samples_yield_playbooks_of_a_configured_type(
    client: ReflexioClient, sample: str, user: str, types: set[str]
) -> None:
    run(samples.MULTIPLE_TYPES, client=client)
    run(sample, client=client)
    found = rules(client, user)
    assert found
    assert {each.playbook_name for each in found} <= types
    assert {each.agent_version for each in found} == {"v2.1.0"}
    assert client.get_user_playbooks(playbook_name=found[0].playbook_name, limit=100).user_playbooks == found


def test_an_expert_answer_teaches_what_it_adds_and_other_turns_are_mined_too(client: ReflexioClient) -> None:
    answered = {
        "role": "Agent",
        "content": "You can return it within 14 days.",
        "expert_content": "Lamps can be returned for 100 days. Print the label under Orders > Returns.",
    }
    said = [{"role": "User", "content": "How do I return a lamp?"}, answered, *turns(FACT)]
    client.publish_interaction("ann", said, wait_for_response=True)
    assert "100 days" in rules(client, "ann")[0].content
    assert "vegetarian" in facts(client, "ann")[0].content


def test_evidence_stands_in_the_turns_it_names(client: ReflexioClient) -> None:
    client.publish_interaction("ann", turns("Hi", "Hello", ORDER, "Done.", FACT), wait_for_response=True)
    said = {each.interaction_id: each.content for each in client.get_interactions("ann").interactions}
    learned: list[UserPlaybook | UserProfile] = [*rules(client, "ann"), *facts(client, "ann")]
    assert len(learned) == 2
    for each in learned:
        source = " ".join(said[turn] for turn in each.source_interaction_ids)
        assert each.source_span
        assert all(line in source for line in each.source_span.splitlines())


def test_small_talk_and_plain_questions_leave_nothing(client: ReflexioClient) -> None:
    said = turns("Hi!", "Hello!", "How late is it in Oslo?", "Ten past nine.", "Thanks, have a nice day.", "You too.")
    answer = client.publish_interaction("ann", said, wait_for_response=True)
    assert (answer.learning_status, answer.profiles_added, answer.playbooks_added) == ("done", 0, 0)
    assert [*rules(client, "ann"), *facts(client, "ann")] == []


def test_a_contradiction_keeps_the_newer_and_the_history(client: ReflexioClient) -> None:
    client.publish_interaction("ann", turns("I live in Oslo."), wait_for_response=True)
    answer = client.publish_interaction("ann", turns("I live in Rome now, I moved."), wait_for_response=True)
    assert (answer.profiles_added, answer.profiles_updated) == (0, 1)
    assert ["Rome" in each.content for each in facts(client, "ann")] == [True]
    assert ["Oslo" in each.content for each in facts(client, "ann", "superseded")] == [True]


def test_said_again_nothing_is_added(client: ReflexioClient) -> None:
    for added in (1, 0):
        answer = client.publish_interaction("ann", turns(FACT), wait_for_response=True)
        assert answer.profiles_added == added
    assert len(facts(client, "ann")) == 1


@pytest.mark.parametrize("types", [1, 3])
def test_a_request_to_forget_removes(client: ReflexioClient, types: int) -> None:
    if types > 1:
        run(samples.MULTIPLE_TYPES, client=client)
    client.publish_interaction("ann", turns(FACT), wait_for_response=True)
    answer = client.publish_interaction("ann", turns("Please forget that I am vegetarian."), wait_for_response=True)
    assert answer.learning_status == "done", answer.learning_reason
    assert facts(client, "ann") == []


def test_the_background_learns_when_a_stride_has_gathered(client: ReflexioClient) -> None:
    client.update_config({"window_size": 6, "stride_size": 4, "extraction_idle_timeout_seconds": 0})
    client.publish_interaction("ann", turns(FACT, "Noted."))
    first = client.publish_interaction("ann", turns("Hello"))
    assert client.get_learning_status(first.request_id or "") == "pending"
    client.publish_interaction("ann", turns("What a day."))
    eventually(lambda: client.get_learning_status(first.request_id or "") == "done")
    assert len(facts(client, "ann")) == 1


@pytest.mark.parametrize("how", ["flag", "call"])
def test_the_background_learns_when_a_session_is_finished(client: ReflexioClient, how: str) -> None:
    client.update_config({"extraction_idle_timeout_seconds": 0})
    session = name("session")
    client.publish_interaction("ann", turns(FACT), session_id=session, session_finished=how == "flag")
    if how == "call":
        client.finalize_session("ann", session)
    eventually(lambda: len(facts(client, "ann")) == 1)


def test_a_quiet_time_of_a_second_is_enough_when_it_is_set_so(client: ReflexioClient) -> None:
    client.update_config({"extraction_idle_timeout_seconds": 1})
    client.publish_interaction("ann", turns(FACT))
    eventually(lambda: len(facts(client, "ann")) == 1)


def test_evaluation_only_is_never_learned(client: ReflexioClient) -> None:
    client.update_config({"extraction_idle_timeout_seconds": 1})
    watched = client.publish_interaction("ann", turns(FACT), evaluation_only=True, wait_for_response=True)
    client.publish_interaction("ann", turns(ORDER), wait_for_response=True)
    assert client.get_learning_status(watched.request_id or "") == "not_tracked"
    assert (len(facts(client, "ann")), len(rules(client, "ann"))) == (0, 1)


def test_types_learn_from_their_sources_only_and_manual_ones_not_by_themselves(client: ReflexioClient) -> None:
    kinds = {
        "profile_extractor_configs": [
            {"extraction_definition_prompt": "Facts", "request_sources_enabled": ["chat"]},
            {"extractor_name": "by_hand", "extraction_definition_prompt": "Facts", "manual_trigger": True},
        ],
        "playbook_configs": [
            {"playbook_name": "p", "playbook_definition_prompt": "Rules", "request_sources_enabled": ["mail"]}
        ],
    }
    client.update_config(kinds)
    client.publish_interaction("ann", turns(FACT, "Yes.", ORDER), source="chat", wait_for_response=True)
    assert (len(facts(client, "ann")), len(rules(client, "ann"))) == (1, 0)
    assert facts(client, "ann")[0].extractor_names == ["profile"]
    client.publish_interaction("bob", turns(FACT, "Yes.", ORDER), source="mail", wait_for_response=True)
    assert (len(facts(client, "bob")), len(rules(client, "bob"))) == (0, 1)
    client.publish_interaction("cid", turns(FACT, "Yes.", ORDER), source="post", wait_for_response=True)
    assert (len(facts(client, "cid")), len(rules(client, "cid"))) == (0, 0)


def test_turns_with_only_tools_or_pictures_are_learned_without_harm(client: ReflexioClient) -> None:
    said: list[dict[str, Any]] = [
        {"role": "User", "interacted_image_url": "https://example.com/a.png"},
        {"role": "Agent", "tools_used": [{"tool_name": "look", "tool_data": {"id": 1}, "status": "ok"}]},
    ]
    answer = client.publish_interaction("ann", said, wait_for_response=True)
    assert (answer.learning_status, answer.profiles_added, answer.playbooks_added) == ("done", 0, 0)
