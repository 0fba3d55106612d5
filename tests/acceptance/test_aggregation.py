"""What many users teach becomes one playbook that a person approves: on a real server, with a model and without."""

import re
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.errors import Conflict, NotFound
from reflexio.models.learning import PlaybookStatus
from reflexio.models.operation import OperationStatus
from reflexio.models.review import ReviewItem
from tests.acceptance import playbook_samples, samples
from tests.acceptance.aggregation_talks import CUSTOMERS, complaint, order
from tests.acceptance.test_playbook_samples import printed
from tests.acceptance.test_samples import run
from tests.builders import eventually
from tests.conftest import StartServer
from tests.scripted_model import Answer, Asked, ScriptedModel, scripted_model

VERSION = "v2.1.0"
NEED = "My parcel is marked delivered, but there is nothing here!"
RULE = "Ask the neighbours before any refund."

AGGREGATE = """
response = client.run_playbook_aggregation(
agent_version="v2.1.0"
)
"""


def publish(client: ReflexioClient, users: list[str] = CUSTOMERS, **more: Any) -> None:
    for number, user in enumerate(users):
        answer = client.publish_interaction(
            user, complaint(number), agent_version=VERSION, source="chat", wait_for_response=True, **more
        )
        assert answer.learning_status == "done"


def queue(client: ReflexioClient) -> list[ReviewItem]:
    return client.get_review_queue(agent_version=VERSION).items


def context(client: ReflexioClient, user: str = "somebody-else") -> str:
    return str(client.get_context(NEED, user_id=user, agent_version=VERSION).context)


def approved_by_eve(client: ReflexioClient) -> ReviewItem:
    """From the queue into the context of a user who never taught anything."""
    (item,) = queue(client)
    assert context(client) == "", "nobody has approved it yet"
    client.review_agent_playbooks(
        [item.agent_playbook.agent_playbook_id], playbook_status="approved", reviewer="eve", reason="so it is"
    )
    assert str(item.agent_playbook.content) in context(client)
    assert queue(client) == []
    return item


def test_what_twelve_users_taught_reaches_another_one(
    client: ReflexioClient, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(client, skip_aggregation=True)
    response = run(AGGREGATE, client=client)["response"]
    assert (response.success, response.is_complete) == (True, True)
    assert response.message == "Processed 12 user playbooks, found 1 clusters, generated 1 agent playbooks"
    out, _ = printed(capsys, playbook_samples.WEEKLY_REVIEW, client)
    assert "Playbooks pending review: 1" in out
    (item,) = queue(client)
    assert (item.support, item.evidence_count) == (12, 12)
    assert "neighbours" in item.agent_playbook.content
    assert not any(order(number) in item.agent_playbook.model_dump_json() for number in range(12))
    windows = {each.user_playbook_id: each.source_interaction_ids for each in item.agent_playbook.source_windows}
    assert all(len(each) == 4 for each in windows.values()), "whole windows"
    assert all(each.source_span for each in item.evidence)
    approved_by_eve(client)
    told = client.get_provenance("agent_playbook", item.agent_playbook.agent_playbook_id)
    assert told.provenance_status == "exact"
    assert len(told.source_user_playbooks) == 12
    assert [(each.op, each.actor) for each in told.events] == [("aggregated", "local"), ("reviewed", "eve")]
    out, _ = printed(capsys, playbook_samples.IMPROVEMENT, client)
    assert item.agent_playbook.content in out


def test_a_repetition_generates_nothing_and_a_new_voice_a_successor(client: ReflexioClient) -> None:
    publish(client, CUSTOMERS[:4], skip_aggregation=True)
    assert client.get_agent_playbooks().agent_playbooks == [], "cached"
    client.run_playbook_aggregation(agent_version=VERSION)
    (first,) = client.get_agent_playbooks().agent_playbooks
    again = client.run_playbook_aggregation(agent_version=VERSION, wait_for_response=True)
    assert (again.clusters_found, again.playbooks_generated) == (1, 0)
    client.review_agent_playbooks([first.agent_playbook_id], playbook_status="approved")
    more = "Ask the neighbours before you start a refund, and look at the photo that the driver took."
    row = {"user_id": "zoe", "agent_version": VERSION, "trigger": "The parcel is said to be delivered", "content": more}
    client.add_user_playbook([row])
    client.run_playbook_aggregation(agent_version=VERSION, wait_for_response=True)
    (item,) = queue(client)
    assert item.agent_playbook.replaces == [first.agent_playbook_id]
    assert item.support == 5
    assert f"- content: {first.content}" in item.difference
    assert f"+ content: {item.agent_playbook.content}" in item.difference
    assert first.content in context(client), "what is approved stays until somebody decides"
    done = client.review_agent_playbooks([item.agent_playbook.agent_playbook_id], playbook_status="approved")
    assert done.retired_ids == [first.agent_playbook_id]
    assert item.agent_playbook.content in context(client)
    assert [row.agent_playbook_id for row in client.get_agent_playbooks().agent_playbooks] == [
        item.agent_playbook.agent_playbook_id
    ]
    back = client.undo_review([item.agent_playbook.agent_playbook_id], reviewer="eve")
    assert back.restored_ids == [first.agent_playbook_id]
    assert first.content in context(client)
    assert len(queue(client)) == 1


def test_disagreement_is_shown_and_never_merged(client: ReflexioClient) -> None:
    said = ["Ask for the order number.", "Always ask for the order number.", "Do not ask for the order number."]
    trigger = "A customer asks where their parcel is"
    client.add_user_playbook(
        [
            {"user_id": f"u{number}", "agent_version": VERSION, "trigger": trigger, "content": content}
            for number, content in enumerate(said)
        ]
    )
    client.run_playbook_aggregation(agent_version=VERSION)
    (item,) = queue(client)
    assert item.support == 2
    assert [each.content for each in item.disagreement] == ["Do not ask for the order number."]
    assert [each.user_id for each in item.disagreement] == ["u2"]


def test_edits_bulk_decisions_and_their_undoing(client: ReflexioClient) -> None:
    rows = [{"content": f"Rule {number}", "agent_version": VERSION} for number in range(3)]
    ids = [int(each) for each in client.add_agent_playbooks(rows).ids]
    client.update_agent_playbook(ids[0], content="Better", playbook_status="approved", reviewer="eve", reason="clearer")
    client.review_agent_playbooks(ids[1:], playbook_status="rejected", reviewer="bob", reason="no")
    assert queue(client) == []
    (shown,) = client.get_review_queue(agent_playbook_id=ids[1]).items
    assert [(each.op, each.actor, each.reason) for each in shown.history] == [("reviewed", "bob", "no")]
    assert client.undo_review(ids).changed_count == 3
    assert sorted(each.agent_playbook.content for each in queue(client)) == ["Rule 0", "Rule 1", "Rule 2"]
    with pytest.raises(Conflict, match="no decision"):
        client.undo_review(ids[:1])
    with pytest.raises(NotFound):
        client.review_agent_playbooks([*ids, 999_999], playbook_status="approved")
    assert len(queue(client)) == 3, "all of them or none"


def test_who_leaves_leaves_no_window_behind(client: ReflexioClient) -> None:
    publish(client, CUSTOMERS[:3], skip_aggregation=True)
    client.run_playbook_aggregation(agent_version=VERSION)
    (before,) = client.get_agent_playbooks().agent_playbooks
    counts = client.clear_user_data(CUSTOMERS[0]).deleted_counts
    assert counts["user_playbooks"] == 1
    (after,) = [
        each
        for each in client.get_agent_playbooks(status_filter=["None", "superseded"]).agent_playbooks
        if each.agent_playbook_id == before.agent_playbook_id
    ]
    assert len(after.source_windows) == after.support == 2
    done = client.clear_user_data(CUSTOMERS[1], withdraw_unsupported=True)
    assert done.withdrawn_agent_playbooks == 1
    assert client.get_agent_playbooks().agent_playbooks == []


class Model:
    """Finds the lesson in every complaint, and makes one rule of all. Stands still at a rule when told to."""

    def __init__(self) -> None:
        self.rules: list[Asked] = []
        self.reached, self.go_on = Event(), Event()
        self.go_on.set()

    def __call__(self, asked: Asked) -> Answer:
        if "decisions" in asked.wants:
            return {"decisions": [{"note": 1, "action": "add"}]}
        if "rule" in asked.wants:
            self.rules.append(asked)
            self.reached.set()
            self.go_on.wait(30)
            return {"rule": {"trigger": "A parcel is missing", "content": RULE, "rationale": "Many say so."}}
        found = re.search(r"turn (\d+), user[^\n]*\n([^\n]*neighbours[^\n]*)", asked.case)
        assert found
        proof = {"turn": int(found[1]), "text": found[2]}
        lesson = {"type": "pain_points", "trigger": "A parcel is missing", "content": found[2], "evidence": [proof]}
        return {"playbooks": [lesson]}


@pytest.fixture
def answers() -> Model:
    return Model()


@pytest.fixture
def model(answers: Model) -> Iterator[ScriptedModel]:
    with scripted_model(otherwise=answers) as model:
        yield model


def test_with_a_model_it_begins_by_itself_and_survives_a_kill(
    start_server: StartServer, model: ScriptedModel, answers: Model
) -> None:
    server = start_server(REFLEXIO_MODEL="openai:scripted", OPENAI_BASE_URL=model.url, OPENAI_API_KEY="not-a-real-key")
    with ReflexioClient(url_endpoint=server.url) as client:
        run(samples.AGGREGATION, client=client)
        answers.go_on.clear()
        publish(client)
        assert answers.reached.wait(30), "ten new ones are enough"
        server.kill()
        answers.go_on.set()
        server.start()
        eventually(lambda: len(queue(client)) == 1)
        assert len(answers.rules) == 2, "the call that was cut off is made again, and no other"
        (item,) = queue(client)
        assert item.agent_playbook.playbook_name == "pain_points"
        assert (item.agent_playbook.content, item.support) == (RULE, 12)
        assert all(len(each.source_interaction_ids) == 4 for each in item.agent_playbook.source_windows)
        again = client.run_playbook_aggregation(agent_version=VERSION, wait_for_response=True)
        assert (again.clusters_found, again.playbooks_generated, len(answers.rules)) == (1, 0, 2)
        approved_by_eve(client)
        assert {"learn", "aggregate"} <= {each.operation for each in client.get_usage().usage}


def test_a_slow_model_is_not_waited_for_unless_asked(
    start_server: StartServer, model: ScriptedModel, answers: Model
) -> None:
    server = start_server(REFLEXIO_MODEL="openai:scripted", OPENAI_BASE_URL=model.url, OPENAI_API_KEY="not-a-real-key")
    with ReflexioClient(url_endpoint=server.url, retries=0) as client:
        rows = [{"user_id": f"u{n}", "agent_version": VERSION, "content": RULE} for n in range(3)]
        client.add_user_playbook(rows)
        answers.go_on.clear()
        begun = client.run_playbook_aggregation(agent_version=VERSION)
        assert (begun.success, begun.is_complete, begun.user_playbooks_processed) == (True, False, 3)
        assert "found 1 clusters" in begun.message
        second = client.run_playbook_aggregation(agent_version=VERSION)
        assert not second.success
        assert begun.operation_id in second.message
        assert client.get_agent_playbooks().agent_playbooks == []
        answers.go_on.set()
        *_, last = client.follow_operation(begun.operation_id)
        assert (last.status, last.stats["total_generated"]) == (OperationStatus.COMPLETED, 1)
        (made,) = client.get_agent_playbooks().agent_playbooks
        assert made.playbook_status is PlaybookStatus.PENDING, "no old answer hides it"
        answers.go_on.clear()
        client.add_user_playbook([{"user_id": "u9", "agent_version": VERSION, "content": f"{RULE} Always."}])
        client.add_user_playbook(
            [{"user_id": f"w{n}", "agent_version": VERSION, "content": "Send invoices as PDF files."} for n in range(3)]
        )
        client.run_playbook_aggregation(agent_version=VERSION)
        assert client.cancel_operation("playbook_aggregation").cancelled_services == ["playbook_aggregation"]
        answers.go_on.set()
        eventually(
            lambda: (
                client.get_operation_status("playbook_aggregation").operation_status.status  # type: ignore[union-attr]
                is OperationStatus.CANCELLED
            )
        )
