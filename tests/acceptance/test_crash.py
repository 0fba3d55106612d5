"""`kill -9` while eight clients publish: what was answered is there, once; who repeats ends with each once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.errors import ServerUnreachable
from tests.builders import every_turn
from tests.conftest import StartServer

PUBLISHES = 1000
CLIENTS = 8
PATIENCE = 60


class Progress:
    """Which publishes were answered; the server is killed at chosen counts of them."""

    def __init__(self) -> None:
        self._answered: dict[str, str | None] = {}
        self._more = threading.Condition()
        self.up = threading.Event()
        self.up.set()

    def note(self, text: str, request_id: str | None) -> None:
        with self._more:
            self._answered[text] = request_id
            self._more.notify_all()

    def answered(self) -> dict[str, str | None]:
        with self._more:
            return dict(self._answered)

    def wait_for(self, count: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: len(self._answered) >= count, PATIENCE)


def publish(url: str, number: int, progress: Progress) -> None:
    with ReflexioClient(url_endpoint=url, retries=0) as client:
        for count in range(PUBLISHES // CLIENTS):
            text = f"{number}-{count}"
            while True:
                assert progress.up.wait(PATIENCE)
                try:
                    answer = client.publish_interaction("ann", [{"content": text}], idempotency_key=text)
                    break
                except ServerUnreachable:
                    continue
            progress.note(text, answer.request_id)


def stored(url: str) -> dict[str, str]:
    with ReflexioClient(url_endpoint=url) as client:
        found = every_turn(client, "ann")
    assert len({turn.content for turn in found}) == len(found), "a publish was stored twice"
    return {turn.content: turn.request_id for turn in found}


@pytest.mark.parametrize("moments", [(1, 300, 900), (57, 58, 640)])
def test_every_answered_publish_survives_and_none_is_there_twice(
    start_server: StartServer, moments: tuple[int, ...]
) -> None:
    server, progress = start_server(), Progress()
    with ThreadPoolExecutor(CLIENTS) as threads:
        running = [threads.submit(publish, server.url, number, progress) for number in range(CLIENTS)]
        for moment in moments:
            progress.wait_for(moment)
            progress.up.clear()
            server.kill()
            answered = progress.answered()
            server.start()
            found = stored(server.url)
            assert answered == {text: found.get(text) for text in answered}
            progress.up.set()
        for each in running:
            each.result()

    found = stored(server.url)
    assert len(found) == PUBLISHES
    assert progress.answered() == found
