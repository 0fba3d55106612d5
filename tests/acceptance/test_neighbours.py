"""Whatever one organisation does, the calls of another are answered in time, and its turns are learned."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import httpx
import pytest

from reflexio.server.process import ServerProcess
from tests.acceptance.noisy_organisation import ATTACKS, connect, fill, publish
from tests.builders import eventually, new_key
from tests.conftest import AT_HOME

pytestmark = pytest.mark.slow
TURNS = 100_000
SECONDS, ALONE_SECONDS = 15.0, 3.0
PUBLISH_SECONDS, HEALTH_SECONDS = 0.5, 0.1
USUAL_SECONDS = 0.05
"""What 99 of 100 publishes take at most on a machine that does nothing else. Where they take longer with nobody else on
the server, other programs use the machine, and the bounds are wider in the same measure."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path, AT_HOME)
    new_key(tmp_path, "operator")
    server.start()
    yield server
    server.kill()


class Stopwatch:
    """Calls again and again in a thread, and keeps how long each call took."""

    def __init__(self, call: Callable[[int], object], pause: float) -> None:
        self.seconds: list[float] = []
        self.errors: list[Exception] = []
        self._call, self._pause = call, pause
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for number in count():
            if self._end.wait(self._pause):
                return
            began = time.perf_counter()
            try:
                self._call(number)
            except httpx.HTTPError as error:
                self.errors.append(error)
            self.seconds.append(time.perf_counter() - began)

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def percentile(self, share: float) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * share)]


class Neighbour:
    """Publishes and looks at the health all the time."""

    def __init__(self, stack: ExitStack, url: str, token: str) -> None:
        self.http = stack.enter_context(connect(url, token))
        looking = stack.enter_context(connect(url, token))
        texts = ["Where is my parcel?", "On its way."]
        self.publishing = Stopwatch(lambda number: publish(self.http, f"user-{number % 20}", texts), 0.02)
        self.looking = Stopwatch(lambda _: looking.get("/health").raise_for_status(), 0.02)
        for watch in (self.publishing, self.looking):
            stack.callback(watch.stop)

    def stop(self) -> dict[str, float]:
        self.publishing.stop()
        self.looking.stop()
        assert self.publishing.errors == self.looking.errors == []
        return {"publish": self.publishing.percentile(0.99), "health": self.looking.percentile(0.99)}


def test_nothing_that_one_organisation_does_slows_another(server: ServerProcess, tmp_path: Path) -> None:
    noisy, quiet = new_key(tmp_path, "noisy"), new_key(tmp_path, "quiet")
    with ExitStack() as stack:
        with connect(server.url, noisy) as theirs:
            fill(theirs, TURNS)
        neighbour = Neighbour(stack, server.url, quiet)
        time.sleep(ALONE_SECONDS)
        alone = neighbour.stop()

        neighbour = Neighbour(stack, server.url, quiet)
        command = [sys.executable, "-m", "tests.acceptance.noisy_organisation", server.url, noisy]
        attackers = [subprocess.Popen([*command, name, str(SECONDS)]) for name in ATTACKS]
        for attacker in attackers:
            stack.callback(attacker.kill)
        time.sleep(SECONDS / 2)  # until all attacks are under way
        request_id = publish_to_learn(neighbour.http)
        assert [attacker.wait(timeout=300) for attacker in attackers] == [0] * len(attackers)
        beside = neighbour.stop()
        # The model of the others still answers nothing.
        eventually(lambda: status(neighbour.http, request_id) == "done")
    slowness = max(1.0, alone["publish"] / USUAL_SECONDS)
    assert beside["publish"] < PUBLISH_SECONDS * slowness, (alone, beside)
    assert beside["health"] < HEALTH_SECONDS * slowness, (alone, beside)


def publish_to_learn(http: httpx.Client) -> str:
    turns = [{"role": "user", "content": "Always answer in English."}]
    body = {"user_id": "learner", "interaction_data_list": turns, "session_finished": True}
    return str(http.post("/api/publish_interaction", json=body).json()["request_id"])


def status(http: httpx.Client, request_id: str) -> str:
    return str(http.get("/api/learning_status", params={"request_id": request_id}).json()["status"])
