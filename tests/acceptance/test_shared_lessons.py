"""Lessons of agents on a real server: private first, everybody's once a person has approved them."""

import pytest

from reflexio import AsyncReflexioClient, PlaybookStatus, ReflexioClient
from reflexio.agents import Attempt, ReflexioLessons, ReflexionResult, reflexion, reflexion_sync
from reflexio.errors import InvalidRequest, NotAuthorised
from tests.conftest import Org

ADVICE = "Write every date with the year first."


def clerk(task: str, attempt: Attempt) -> str:
    """An agent that knows what it is told."""
    return "2026-11-16" if "year first" in attempt.text() else "11/16/26"


def is_iso(said: str) -> tuple[bool, str]:
    return said.startswith("2026-"), ADVICE


def works_for(client: ReflexioClient, user_id: str, task: str) -> ReflexionResult:
    lessons = ReflexioLessons(client, user_id=user_id, agent_version="clerk-1")
    return reflexion_sync(clerk, task, evaluate=is_iso, lessons=lessons, user_id=user_id, agent_version="clerk-1")


def test_a_lesson_is_a_user_playbook_and_serves_the_next_run_of_that_user(client: ReflexioClient) -> None:
    first = works_for(client, "ada", "Extract the date from the letter of the landlord")
    assert (first.passed, len(first.attempts)) == (True, 2)
    (stored,) = client.get_user_playbooks(user_id="ada", playbook_name="reflexion_lessons").user_playbooks
    assert stored.content == ADVICE
    assert stored.trigger == "Extract the date from the letter of the landlord"
    assert stored.rationale == ADVICE
    assert (stored.source, stored.agent_version, stored.request_id) == ("reflexion", "clerk-1", first.run_id)

    second = works_for(client, "ada", "Extract the date from the letter of the bank")
    assert (second.passed, len(second.attempts)) == (True, 1)
    (stored,) = client.get_user_playbooks(user_id="ada").user_playbooks
    assert stored.outcomes is not None
    assert (stored.outcomes.helped, stored.outcomes.hurt) == (2, 0)

    assert len(works_for(client, "ben", "Extract the date from the letter of the bank").attempts) == 2


async def test_the_asynchronous_client_serves_as_well(org: Org) -> None:
    async with AsyncReflexioClient(url_endpoint=org.url, api_key=org.token) as client:
        lessons = ReflexioLessons(client, user_id="ada")
        for attempts in (2, 1):
            result = await reflexion(clerk, "Date this letter", evaluate=is_iso, lessons=lessons)
            assert (result.passed, len(result.attempts), result.problems) == (True, attempts, ())


def test_what_was_approved_for_everybody_is_recalled_and_credited(client: ReflexioClient) -> None:
    told = {"content": ADVICE, "trigger": "a date is asked for", "agent_version": "clerk-1"}
    (name,) = client.add_agent_playbooks([told]).ids
    assert len(works_for(client, "cleo", "Which date is asked for in the letter?").attempts) == 2
    client.delete_all_user_playbooks()

    client.update_agent_playbook_status(int(name), playbook_status=PlaybookStatus.APPROVED)
    assert len(works_for(client, "cleo", "Which date is asked for in the letter?").attempts) == 1
    (approved,) = client.get_agent_playbooks(force_refresh=True).agent_playbooks
    assert approved.outcomes is not None
    assert approved.outcomes.helped == 1


def test_outcomes_of_what_is_not_there_are_passed_over(client: ReflexioClient) -> None:
    (name,) = client.add_user_playbook([{"user_id": "ada", "content": "Be brief."}]).ids
    assert client.record_outcome("hurt", user_playbook_ids=[int(name), 999_999]).msg == "Counted 1 playbook(s)"
    assert client.record_outcome("hurt", agent_playbook_ids=[int(name)]).msg == "Counted 0 playbook(s)"
    assert client.record_outcome("hurt").msg == "Counted 0 playbook(s)"
    with pytest.raises(InvalidRequest, match="outcome"):
        client.record_outcome("blessed", user_playbook_ids=[1])  # type: ignore[arg-type]


def test_a_server_that_refuses_costs_the_lessons_and_not_the_answer(org: Org) -> None:
    with ReflexioClient(url_endpoint=org.url, api_key="wrong", retries=0) as client:
        result = works_for(client, "ada", "Extract the date")
        assert (result.passed, len(result.attempts)) == (True, 2)
        assert any(NotAuthorised.__name__ in each or "key" in each for each in result.problems)


def test_what_agent_a_learned_lets_agent_b_succeed_at_once_after_aggregation_and_approval(
    client: ReflexioClient,
) -> None:
    # Only when it is asked for, or a slow machine would aggregate the first two by itself.
    by_hand = {"reaggregation_trigger_count": 1_000}
    lessons = {"playbook_name": "reflexion_lessons", "playbook_definition_prompt": "what agents learned"}
    client.update_config({"playbook_configs": [{**lessons, "playbook_aggregator_config": by_hand}]})
    for user, letter in (("ada", "the landlord"), ("ben", "the bank"), ("cem", "the school")):
        failed = works_for(client, user, f"Extract the date from the letter of {letter}")
        assert len(failed.attempts) == 2

    made = client.run_playbook_aggregation(agent_version="clerk-1", wait_for_response=True)
    assert made.success
    (pending,) = client.get_agent_playbooks(status_filter=["pending"], force_refresh=True).agent_playbooks
    assert pending.playbook_name == "reflexion_lessons"
    assert len(pending.source_windows) == 3

    # While it waits for a person, nobody else is told.
    waiting = ReflexioLessons(client, user_id="dee", agent_version="clerk-1")
    task = "Extract the date from the letter of the doctor"
    early = reflexion_sync(clerk, task, evaluate=is_iso, lessons=waiting, max_attempts=1)
    assert not early.passed

    client.update_agent_playbook_status(
        pending.agent_playbook_id, playbook_status=PlaybookStatus.APPROVED, reviewer="mei"
    )
    agent_b = works_for(client, "dee", task)
    assert (agent_b.passed, len(agent_b.attempts)) == (True, 1)
    assert [each.scope for each in agent_b.attempts[0].lessons] == ["agent"]
