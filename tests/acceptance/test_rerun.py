"""Reruns, runs by hand and provenance on a real server, with the learner that needs no model."""

import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.errors import InvalidRequest, NotFound
from reflexio.models.operation import OperationStatus
from reflexio.models.profile import UserProfile
from tests.builders import eventually, name, problem, turns
from tests.conftest import Org

FACTS = (
    "I live in Lisbon.",
    "I am allergic to peanuts.",
    "My favourite colour is green.",
    "I work as a nurse.",
    "I have a dog called Rex.",
)


def conversation(*told: str, size: int = 25) -> list[dict[str, Any]]:
    """So many turns, with what is told spread over all of them."""
    said = ["What time is it?", "It is noon."] * (size // 2) + ["What time is it?"] * (size % 2)
    for place, each in enumerate(told):
        said[2 * (place * (size // 2) // max(1, len(told) - 1)) if len(told) > 1 else 0] = each
    return turns(*said)


def learned(client: ReflexioClient, user: str, status: str | None = None) -> list[UserProfile]:
    return client.get_profiles(user, status_filter=[status], force_refresh=True).user_profiles


def said(rows: list[UserProfile]) -> list[str]:
    return sorted(row.content for row in rows)


def published(client: ReflexioClient, user: str, *told: str, **more: Any) -> str:
    """Stored and learned."""
    answer = client.publish_interaction(user, conversation(*told), wait_for_response=True, **more)
    assert answer.learning_status == "done"
    return str(answer.request_id)


def test_a_rerun_reads_all_windows_and_leaves_current_untouched(client: ReflexioClient) -> None:
    user = name()
    published(client, user, *FACTS)
    current = learned(client, user)
    first, last = (client.get_interactions(user, top_k=25).interactions[place].interaction_id for place in (-1, 0))

    response = client.rerun_profile_generation(user_id=user, wait_for_response=True)

    pending = learned(client, user, "pending")
    assert response.success, response.msg
    assert response.profiles_generated == len(pending) >= 4
    assert response.operation_id not in ("", "rerun_profile_generation")
    cited = {turn for row in pending for turn in row.source_interaction_ids}
    assert min(cited) == first
    assert max(cited) == last
    assert said(pending) == said(current)
    assert learned(client, user) == current


def test_a_second_rerun_replaces_the_pending_set(client: ReflexioClient) -> None:
    user = name()
    published(client, user, *FACTS)
    first = client.rerun_profile_generation(user_id=user, wait_for_response=True)
    before = learned(client, user, "pending")
    second = client.rerun_profile_generation(user_id=user, wait_for_response=True)
    after = learned(client, user, "pending")
    assert second.operation_id != first.operation_id
    assert said(after) == said(before)
    assert not {row.profile_id for row in after} & {row.profile_id for row in before}


def test_what_is_said_in_two_windows_is_learned_once(client: ReflexioClient) -> None:
    user = name()
    published(client, user, FACTS[1], "Which day is it?", FACTS[1])
    assert client.rerun_profile_generation(user, wait_for_response=True).profiles_generated == 1


def test_a_rerun_of_one_user_leaves_the_others_pending_rows(client: ReflexioClient) -> None:
    ann, bob = name(), name()
    for user in (ann, bob):
        published(client, user, *FACTS)
    assert client.rerun_profile_generation(wait_for_response=True).success
    before = learned(client, bob, "pending")
    client.rerun_profile_generation(user_id=ann, wait_for_response=True)
    assert learned(client, bob, "pending") == before

    response = client.upgrade_profiles(user_id=ann)

    assert response.profiles_promoted == len(learned(client, ann))
    assert learned(client, ann, "pending") == []
    assert learned(client, bob, "pending") == before


def test_a_rerun_keeps_to_its_source_and_its_times(client: ReflexioClient) -> None:
    from datetime import UTC, datetime, timedelta

    user = name()
    published(client, user, FACTS[0], source="chat")
    published(client, user, FACTS[1], source="mail")
    client.rerun_profile_generation(user, source="chat", wait_for_response=True)
    (row,) = learned(client, user, "pending")
    assert (row.source, "Lisbon" in row.content) == ("chat", True)
    later = datetime.now(UTC) + timedelta(hours=1)
    none = client.rerun_profile_generation(user, start_time=later, wait_for_response=True)
    assert (none.success, none.msg) == (False, "No interactions found matching the specified filters")
    assert learned(client, user, "pending") == [row]
    assert client.rerun_profile_generation(user, end_time=later, wait_for_response=True).profiles_generated == 2


def test_turns_for_evaluation_are_never_learned_from(client: ReflexioClient) -> None:
    user = name()
    client.publish_interaction(user, conversation(*FACTS), evaluation_only=True)
    none = client.rerun_profile_generation(user)
    assert (none.success, none.operation_id) == (False, "")


def test_a_rerun_of_playbooks_keeps_to_its_version(client: ReflexioClient) -> None:
    user = name()
    rule, other = "Don't use bullet points from now on.", "From now on always answer in French."
    published(client, user, rule, agent_version="v1")
    published(client, user, other, agent_version="v2")
    current = client.get_user_playbooks(user_id=user).user_playbooks
    for _ in range(2):
        response = client.rerun_playbook_generation(agent_version="v1", wait_for_response=True)
        assert (response.success, response.playbooks_generated) == (True, 1)
    (pending,) = client.get_user_playbooks(user_id=user, status_filter=["pending"]).user_playbooks
    assert pending.agent_version == "v1"
    assert "bullet points" in pending.content
    assert client.get_user_playbooks(user_id=user).user_playbooks == current
    assert client.upgrade_user_playbooks(agent_version="v1").user_playbooks_promoted == 1


def test_of_two_reruns_at_once_one_is_refused(client: ReflexioClient, org: Org) -> None:
    for _ in range(5):
        published(client, name(), *FACTS)
    answers: list[Any] = []

    def run() -> None:
        with org.client() as other:
            answers.append(other.rerun_profile_generation())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    begun = [each for each in answers if each.success]
    assert begun
    for each in answers:
        assert each.success or "already in progress" in str(each.msg)
    assert len({each.operation_id for each in begun}) == len(begun)
    assert list(client.follow_operation(begun[-1].operation_id))[-1].status is OperationStatus.COMPLETED


def test_the_operation_tells_progress_and_what_was_asked(client: ReflexioClient) -> None:
    users = sorted(name() for _ in range(3))
    for user in users:
        published(client, user, *FACTS)
    begun = client.rerun_profile_generation(source="")
    *_, last = client.follow_operation(begun.operation_id)
    told = client.get_operation_status("profile_generation").operation_status
    assert told == last
    assert (last.total_users, last.processed_users, last.progress_percentage) == (3, 3, 100.0)
    assert last.processed_user_ids == users
    assert last.request_params == {"operation_id": begun.operation_id, "source": "", "only_unread": False}
    assert last.stats["total_interactions_processed"] == 75


def test_a_rerun_that_is_cancelled_leaves_the_user_at_hand_as_it_was(client: ReflexioClient) -> None:
    users = [name() for _ in range(40)]
    for user in users:
        client.publish_interaction(user, turns(FACTS[0], "Noted."))
    begun = client.rerun_profile_generation()
    client.cancel_operation("profile_generation")
    *_, last = client.follow_operation(begun.operation_id)
    assert last.status is OperationStatus.CANCELLED
    assert last.processed_users < len(users)
    done = [user for user in users if learned(client, user, "pending")]
    assert sorted(done) == sorted(last.processed_user_ids)


def test_by_hand_the_last_window_becomes_current(client: ReflexioClient, http: httpx.Client) -> None:
    user = name()
    client.publish_interaction(user, conversation(*FACTS))
    answer = http.post("/api/manual_profile_generation", json={"user_id": user}).json()
    rows = learned(client, user)
    assert answer["success"], answer
    assert answer["profiles_generated"] == len(rows)
    window = client.get_interactions(user, top_k=10).interactions
    cited = {turn for row in rows for turn in row.source_interaction_ids}
    assert cited <= {turn.interaction_id for turn in window}
    assert any("Rex" in row.content for row in rows)
    assert http.post("/api/manual_profile_generation", json={"user_id": user}).json()["profiles_generated"] == 0


def test_by_hand_the_client_does_not_wait(client: ReflexioClient) -> None:
    user, other = name(), name()
    client.publish_interaction(user, turns(FACTS[0], "Noted."), source="chat")
    client.publish_interaction(other, turns(FACTS[0], "Noted."), source="mail")
    client.manual_profile_generation(source="chat")
    eventually(lambda: len(learned(client, user)) == 1)
    client.flush()
    assert learned(client, other) == []


def test_by_hand_playbooks_of_a_version(client: ReflexioClient) -> None:
    user = name()
    client.publish_interaction(
        user, turns("Hello", "Hi", "Don't use bullet points from now on."), agent_version="v7", source="chat"
    )
    client.manual_playbook_generation(agent_version="v7", source="chat")
    client.flush()
    (row,) = client.get_user_playbooks(user_id=user, agent_version="v7").user_playbooks
    assert "bullet points" in row.content


def test_what_is_learned_by_hand_counts_as_learned_and_loses_nothing(
    client: ReflexioClient, http: httpx.Client
) -> None:
    user = name()
    sent = client.publish_interaction(user, turns(FACTS[0], "Noted.", "Don't use bullet points from now on."))
    assert http.post("/api/manual_profile_generation", json={"user_id": user}).json()["profiles_generated"] == 1
    assert client.get_learning_status(str(sent.request_id)) == "done"
    assert len(client.get_user_playbooks(user_id=user).user_playbooks) == 1


def test_an_extractor_that_forbids_it_is_left_out_by_hand(client: ReflexioClient, http: httpx.Client) -> None:
    user = name()
    extractor = {"extraction_definition_prompt": "Facts", "allow_manual_trigger": False}
    client.update_config({"profile_extractor_configs": [extractor]})
    sent = client.publish_interaction(user, turns(FACTS[0], "Noted."))
    assert http.post("/api/manual_profile_generation", json={"user_id": user}).json()["profiles_generated"] == 0
    assert learned(client, user) == []
    assert client.get_learning_status(str(sent.request_id)) == "pending"
    assert client.rerun_profile_generation(user, wait_for_response=True).profiles_generated == 1


def test_by_hand_with_nobody_there(http: httpx.Client) -> None:
    answer = http.post("/api/manual_profile_generation", json={"user_id": "nobody"}).json()
    assert answer == {"success": False, "msg": "No interactions found matching the specified filters"}


@pytest.mark.parametrize(
    "body", [{"user_id": ""}, {"start_time": 5}, {"source": "Not A Source"}, {"wait_for_response": True}]
)
def test_a_rerun_of_nonsense_is_a_422(http: httpx.Client, body: dict[str, Any]) -> None:
    problem(http.post("/api/rerun_profile_generation", json=body), 422)


def test_names_that_no_longer_choose_are_accepted(http: httpx.Client) -> None:
    for path, body in (
        ("rerun_profile_generation", {"extractor_names": ["a"]}),
        ("rerun_playbook_generation", {"playbook_name": "a"}),
        ("manual_profile_generation", {"extractor_names": ["a"]}),
        ("manual_playbook_generation", {"playbook_name": "a"}),
    ):
        assert http.post(f"/api/{path}", json=body).status_code == 200


def test_nobody_reruns_the_turns_of_another(client: ReflexioClient, make_org: Callable[[], Org]) -> None:
    user = name()
    published(client, user, *FACTS)
    with make_org().client() as stranger:
        assert not stranger.rerun_profile_generation(user).success


# --- provenance


def test_provenance_tells_the_turns_and_the_learner(client: ReflexioClient) -> None:
    user = name()
    request_id = client.publish_interaction(user, turns(FACTS[0], "Noted."), wait_for_response=True).request_id
    (row,) = learned(client, user)

    told = client.get_provenance("profile", row.profile_id)

    assert (told.success, told.target_id, told.provenance_status) == (True, row.profile_id, "exact")
    assert told.trigger_request_id == request_id
    assert [turn.content for turn in told.interactions] == [FACTS[0]]
    assert told.source_span == FACTS[0]
    assert told.learner == "local"
    assert str(told.fingerprint).startswith("rules-")
    assert [(event.op, event.actor) for event in told.events] == [("learned", "local")]


def test_provenance_tells_what_was_replaced(client: ReflexioClient) -> None:
    user = name()
    for each in ("I live in Lisbon.", "I moved. I live in Porto now."):
        client.publish_interaction(user, turns(each, "Noted."), wait_for_response=True)
    (row,) = [each for each in learned(client, user) if "Porto" in each.content]
    told = client.get_provenance("profile", row.profile_id)
    assert ["Lisbon" in each.content for each in told.replaced] == [True]
    old = client.get_provenance("profile", told.replaced[0].id)
    assert old.events[0].op == "learned"
    assert len(old.events) == 2


def test_provenance_of_an_upgraded_row_tells_its_way(client: ReflexioClient) -> None:
    user = name()
    published(client, user, FACTS[0])
    client.rerun_profile_generation(user, wait_for_response=True)
    client.upgrade_profiles(user)
    (row,) = learned(client, user)
    told = client.get_provenance("profile", row.profile_id)
    assert [(event.op, event.to_status) for event in told.events] == [("learned", "pending"), ("promoted", "current")]


def test_provenance_of_an_agent_playbook_names_its_sources(client: ReflexioClient) -> None:
    user = name()
    client.publish_interaction(user, turns("Hi", "Hello", "Don't use bullet points."), wait_for_response=True)
    (source,) = client.get_user_playbooks(user_id=user).user_playbooks
    window = {
        "user_playbook_id": source.user_playbook_id,
        "source_interaction_ids": source.source_interaction_ids,
    }
    (made,) = client.add_agent_playbooks([{"content": "No bullets", "source_windows": [window]}]).ids
    told = client.get_provenance("agent_playbook", made)
    assert told.provenance_status == "exact"
    (found,) = told.source_user_playbooks
    assert found.user_playbook.content == source.content
    assert found.interactions


def test_provenance_says_when_turns_are_gone(client: ReflexioClient) -> None:
    user = name()
    client.publish_interaction(user, turns(FACTS[0], "Noted."), wait_for_response=True)
    (row,) = learned(client, user)
    client.delete_interaction(user, row.source_interaction_ids[0], wait_for_response=True)
    told = client.get_provenance("profile", row.profile_id)
    assert (told.provenance_status, told.interactions) == ("unavailable", [])


@pytest.mark.parametrize(
    ("kind", "which"), [("profile", "x"), ("user_playbook", "x"), ("user_playbook", "9" * 30), ("agent_playbook", "7")]
)
def test_provenance_of_nothing_is_a_404(client: ReflexioClient, kind: str, which: str) -> None:
    with pytest.raises(NotFound):
        client.get_provenance(kind, which)


def test_provenance_of_an_unknown_kind_is_refused(client: ReflexioClient) -> None:
    with pytest.raises(InvalidRequest, match="kind"):
        client.get_provenance("nonsense", "1")
