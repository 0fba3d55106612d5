"""Clocks that jump, callers that go away in the middle, and providers that fail: nothing is lost, nothing twice."""

import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from tests.acceptance.faults.conftest import StartFaulty
from tests.acceptance.faults.faulty import FaultyServer, broken_findings
from tests.builders import body, eventually, every_turn, turns
from tests.scripted_model import Answer, Asked, Failure, Raw, ScriptedModel, Spoken, scripted_model

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("faults")]

DAY = 86_400
FACT = "I am vegetarian."


def attentive(asked: Asked) -> Answer:
    if "word" in asked.wants:
        return {"word": "yes"}
    if "decisions" in asked.wants:
        return {"decisions": [{"note": 1, "action": "add"}]}
    turn = re.findall(r"turn (\d+), user", asked.case)[-1]
    proof = [{"turn": int(turn), "text": FACT}]
    return {"profiles": [{"type": "profile", "content": "The user is vegetarian", "evidence": proof}]}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with scripted_model(otherwise=attentive) as model:
        yield model


@pytest.fixture
def environment(model: ScriptedModel) -> dict[str, str]:
    return {"REFLEXIO_MODEL": "openai:scripted", "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "not-a-real-key"}


def connect(server: FaultyServer) -> ReflexioClient:
    return ReflexioClient(url_endpoint=server.url, retries=0)


def facts(client: ReflexioClient, user: str) -> list[str]:
    return [row.content for row in client.get_profiles(user, force_refresh=True).user_profiles]


def restart(server: FaultyServer, **faults: Any) -> None:
    server.end()
    server.start(**faults)


@pytest.mark.parametrize("days", [400, -400], ids=["forward", "back"])
def test_a_clock_that_jumps_and_is_corrected_holds_nothing_up(
    faulty: StartFaulty, model: ScriptedModel, environment: dict[str, str], days: int
) -> None:
    server = faulty(environment=environment)
    with connect(server) as client:
        client.publish_interaction("ann", turns(FACT), wait_for_response=True)
        # Refused while the clock is wrong: when to try again is noted by that clock.
        model.otherwise = Failure(500)
        restart(server, clock=days * DAY)
        client.publish_interaction("bob", turns(FACT), force_extraction=True)
        client.publish_interaction("ann", turns("Where is my parcel?"), idempotency_key="once")
        eventually(lambda: client.get_stall_state().stalled or model.calls >= 2)
        model.otherwise = attentive
        client.publish_interaction("ann", turns("Where is my parcel?"), idempotency_key="once")
        restart(server)
        eventually(lambda: len(facts(client, "bob")) == 1)
        assert [turn.content for turn in every_turn(client, "ann")].count("Where is my parcel?") == 1
        assert len(facts(client, "ann")) == 1
        client.run_playbook_aggregation(agent_version="v1", wait_for_response=True)
        assert client.get_context("What can I eat?", user_id="ann").success
    server.end()
    assert broken_findings(server.folder) == []


def test_the_clock_of_an_aggregation_that_failed_may_be_corrected(
    faulty: StartFaulty, model: ScriptedModel, environment: dict[str, str]
) -> None:
    rows = [
        {"user_id": f"u{n}", "agent_version": "v1", "content": "Ask the neighbours.", "trigger": "A parcel is lost"}
        for n in range(12)
    ]
    server = faulty(environment=environment, clock=400 * DAY)
    with connect(server) as client:
        asked = model.calls
        model.otherwise = Spoken("I cannot say.")
        client.add_user_playbook(rows)
        client.run_playbook_aggregation(agent_version="v1")
        eventually(lambda: model.calls > asked)
        rule = {"trigger": "A parcel is lost", "content": "Ask the neighbours first.", "rationale": "Many say so."}
        model.otherwise = lambda asked: {"rule": rule} if "rule" in asked.wants else attentive(asked)
        restart(server)
        eventually(lambda: client.get_review_queue().items != [])


def speak(server: FaultyServer, sent: bytes, wait: Callable[[], object] = lambda: None) -> None:
    """Sends bytes and goes away after `wait`, without reading an answer."""
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as caller:
        caller.sendall(sent)
        wait()


def publish_bytes(key: str, **fields: Any) -> tuple[bytes, bytes]:
    content = json.dumps(body(**fields)).encode()
    head = (
        "POST /api/publish_interaction?wait_for_response=true HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/json\r\nIdempotency-Key: {key}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode(), content


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99], ids=["without a body", "half", "almost"])
def test_a_caller_who_goes_away_in_mid_body_has_stored_nothing(faulty: StartFaulty, share: float) -> None:
    server = faulty()
    head, content = publish_bytes("key", user_id="ann", interaction_data_list=turns(FACT))
    speak(server, head + content[: int(len(content) * share)])
    with connect(server) as client:
        client.publish_interaction("bob", turns(FACT))
        assert every_turn(client, "ann") == []


def test_a_caller_who_does_not_wait_for_the_answer_is_learned_from_once(
    faulty: StartFaulty, model: ScriptedModel, environment: dict[str, str]
) -> None:
    gone = threading.Event()

    def hold(asked: Asked) -> Answer:
        gone.wait(30)
        return attentive(asked)

    model.otherwise = hold
    server = faulty(environment=environment)
    with connect(server) as client:
        said = turns(FACT)
        for _ in range(3):
            sent = b"".join(publish_bytes("once", user_id="ann", interaction_data_list=said))
            speak(server, sent, lambda: eventually(lambda: model.calls > 0))
        gone.set()
        done = httpx.post(
            f"{server.url}/api/publish_interaction?wait_for_response=true",
            json=body(user_id="ann", interaction_data_list=said),
            headers={"Idempotency-Key": "once"},
            timeout=30,
        )
        assert done.is_success, done.text
        eventually(lambda: len(facts(client, "ann")) == 1)
        assert len(every_turn(client, "ann")) == 1
        assert Counter("profiles" in asked.wants for asked in model.requests) == {True: 1}
        assert [usage.calls for usage in client.get_usage().usage] == [1]


@pytest.mark.parametrize(
    "fault",
    [Failure(500), Raw(b'{"choices": [{"mess')],
    ids=["error", "cut off"],
)
def test_a_provider_that_fails_now_and_then_is_paid_once_for_each_answer(
    faulty: StartFaulty, model: ScriptedModel, environment: dict[str, str], fault: Answer
) -> None:
    server = faulty(environment=environment)
    with connect(server) as client:
        model.answers.extend([fault, attentive, fault, attentive])
        for user in ("ann", "bob"):
            client.publish_interaction(user, turns(FACT), force_extraction=True)
        eventually(lambda: all(len(facts(client, user)) == 1 for user in ("ann", "bob")))
        read = [asked for asked in model.requests if "profiles" in asked.wants]
        assert len(read) <= 6, "two answers, and each fault once or twice"
    server.end()
    assert broken_findings(server.folder) == []
