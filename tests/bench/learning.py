"""What learning costs and how long it takes, with a scripted model over HTTP that counts, and with none."""

import http.client
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reflexio import ReflexioClient
from reflexio.server.process import running_server
from tests.bench.load import post
from tests.bench.report import Figure, milliseconds
from tests.scripted_model import Answer, Asked, ScriptedModel, scripted_model

WAITED, USERS, WINDOWS, CONCURRENCY, SLOW = 40, 64, 200, 8, 0.2
PATIENCE = 120
QUOTE = "always check with the neighbours first"
TALK = [
    {"role": "User", "content": f"My parcel {number} is marked delivered, but there is nothing here."}
    if number % 2 == 0
    else {"role": "Agent", "content": "I am sorry. I have started a refund for you, it takes two days."}
    for number in range(9)
]
WINDOW = [*TALK, {"role": "User", "content": f"No, {QUOTE}, then look at refunds."}]


def attentive(asked: Asked) -> Answer:
    """Finds one playbook in every window; of stored ones and of rules it says that they are known already."""
    if "rule" in asked.wants:
        return {"rule": None}
    if "decisions" in asked.wants:
        return {"decisions": [{"note": 1, "action": "drop"}]}
    numbers = [int(head.split("turn ")[1].split(",")[0]) for head in _heads(asked.case)]
    return {"profiles": [], "playbooks": [_playbook(number) for number in numbers], "forget": []}


def _heads(case: str) -> Iterator[str]:
    lines = case.splitlines()
    for before, line in pairwise(lines):
        if QUOTE in line and "context" not in before:
            yield before


def _playbook(turn: int) -> dict[str, Any]:
    words = {"trigger": "A parcel is marked delivered and is not there", "content": "Check with the neighbours first."}
    return {"type": "playbook", **words, "rationale": "Asked.", "evidence": [{"turn": turn, "text": QUOTE}]}


@contextmanager
def server(model: ScriptedModel | None = None) -> Iterator[str]:
    environment = {"REFLEXIO_CONCURRENCY": str(CONCURRENCY)}
    if model is not None:
        environment |= {"REFLEXIO_MODEL": "openai:scripted", "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "any"}
    with tempfile.TemporaryDirectory() as folder, running_server(Path(folder), environment) as url:
        yield url


def learning() -> list[Figure]:
    return [*_waited(), *_side_by_side(), *_without_a_model()]


def _waited() -> list[Figure]:
    """One user says the same again and again: from the second window on there is a neighbour."""
    taken = []
    with scripted_model(otherwise=attentive) as model, server(model) as url, ReflexioClient(url_endpoint=url) as client:
        for number in range(WAITED + 5):
            before, began = model.calls, time.perf_counter()
            answer = client.publish_interaction(
                "ann" if number % 2 else f"ann-{number}", WINDOW, wait_for_response=True
            )
            taken.append(time.perf_counter() - began)
            assert answer.learning_status == "done", answer.learning_reason
            assert model.calls > before
        windows = WAITED + 5
        most = max(_calls_by_window(model))
        tokens = sum(asked.prompt_tokens for asked in model.requests if "rule" not in asked.wants) / windows
    p50, p95 = milliseconds(taken[5:])
    return [
        Figure("model calls a window, most", most, "", 2, baseline="4 to 6"),
        Figure("prompt tokens a window of 10 turns, mean", tokens, "", 4000, baseline="20,000"),
        Figure("waited publish above the model's time, p50", p50, "ms", 60, baseline="2.9 s"),
        Figure("waited publish above the model's time, p95", p95, "ms"),
    ]


def _calls_by_window(model: ScriptedModel) -> list[int]:
    """A question about findings begins a window; a question of decisions belongs to the one before."""
    counts: list[int] = []
    for asked in model.requests:
        if "rule" in asked.wants:
            continue
        if "decisions" in asked.wants:
            counts[-1] += 1
        else:
            counts.append(1)
    return counts


def _side_by_side() -> list[Figure]:
    with scripted_model(otherwise=attentive, latency=SLOW) as model, server(model) as url:
        with ReflexioClient(url_endpoint=url) as client:
            client.publish_interaction("warm", WINDOW, wait_for_response=True)
        seconds = _publish_and_wait(url, USERS)
    ideal = USERS / CONCURRENCY * SLOW
    name = f"{USERS} users, a model of {SLOW * 1000:g} ms, {CONCURRENCY} side by side"
    return [
        Figure(f"{name}: times the ideal", seconds / ideal, "", 2.5),
        Figure(f"{name}: windows a second", USERS / seconds, "/s", baseline="0.6/s"),
    ]


def _without_a_model() -> list[Figure]:
    with server() as url:
        with ReflexioClient(url_endpoint=url) as client:
            client.publish_interaction("warm", WINDOW, wait_for_response=True)
        seconds = _publish_and_wait(url, WINDOWS)
    return [
        Figure("windows a second through the server, local learner", WINDOWS / seconds, "/s", 15, more_is_better=True)
    ]


def _publish_and_wait(url: str, users: int) -> float:
    """How long it takes from the first publish until a window of every user has been learned in the background."""

    def publish(user: int, _number: int) -> dict[str, object]:
        return {"user_id": f"user-{user}", "request_id": f"request-{user}", "interaction_data_list": WINDOW}

    address = urlsplit(url)
    began = time.perf_counter()
    assert not post(url, "/api/publish_interaction", publish, clients=users, each=1).failed
    connection = http.client.HTTPConnection(str(address.hostname), address.port)
    waiting = list(range(users))
    while waiting:
        assert time.perf_counter() - began < PATIENCE, f"{len(waiting)} windows were not learned"
        connection.request("GET", f"/api/learning_status?request_id=request-{waiting[-1]}")
        if json.load(connection.getresponse())["status"] == "done":
            waiting.pop()
        else:
            time.sleep(0.02)
    connection.close()
    return time.perf_counter() - began


if __name__ == "__main__":
    for figure in learning():
        print(f"{figure.name}: {figure.value:.4g} {figure.unit}, wanted {figure.wanted}, reached {figure.reached}")
