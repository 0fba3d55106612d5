"""`kill -9` in the midst of a rerun: it goes on with the user at hand, and no finished model call is made again."""

import re
from collections import Counter
from threading import Event
from typing import Any

from reflexio.client.sync import ReflexioClient
from reflexio.models.operation import OperationStatus
from tests.builders import turns
from tests.conftest import StartServer
from tests.scripted_model import Answer, Asked, scripted_model

WINDOWS = [f"fact-{user}-{number}" for user in ("ann", "bob") for number in range(3)]


class Finder:
    """Finds one fact a window, and stands still at one of them until the server is killed."""

    def __init__(self, stop_at: str) -> None:
        self.stop_at = stop_at
        self.reached, self.killed = Event(), Event()
        self.asked: Counter[str] = Counter()

    def __call__(self, asked: Asked) -> Answer:
        if "decisions" in asked.wants:
            return {"decisions": [{"note": 1, "action": "add"}]}
        (fact,) = set(re.findall(r"fact-\w+-\d", asked.case))
        self.asked[fact] += 1
        if fact == self.stop_at and not self.killed.is_set():
            self.reached.set()
            self.killed.wait(30)
        turn = re.findall(r"turn (\d+), ", asked.case.partition(fact)[0])[-1]
        proof = {"turn": int(turn), "text": fact}
        return {"profiles": [{"type": "profile", "content": f"The user likes {fact}", "evidence": [proof]}]}


def conversation(user: str) -> list[dict[str, Any]]:
    said = ["What time is it?", "It is noon."] * 12 + ["What time is it?"]
    for number in range(3):
        said[10 * number] = f"Please note fact-{user}-{number}"
    return turns(*said)


def pending(client: ReflexioClient, user: str) -> list[str]:
    found = client.get_profiles(user, status_filter=["pending"], force_refresh=True).user_profiles
    return sorted(row.content for row in found)


def test_a_killed_rerun_goes_on_where_it_was(start_server: StartServer) -> None:
    first = start_server()
    with ReflexioClient(url_endpoint=first.url) as client:
        for user in ("ann", "bob"):
            client.publish_interaction(user, conversation(user), wait_for_response=True)
    first.stop()
    finder = Finder("fact-bob-1")
    with scripted_model(otherwise=finder) as model:
        server = start_server(
            REFLEXIO_MODEL="openai:scripted", OPENAI_BASE_URL=model.url, OPENAI_API_KEY="not-a-real-key"
        )
        with ReflexioClient(url_endpoint=server.url) as client:
            begun = client.rerun_profile_generation()
            assert finder.reached.wait(30)
            assert len(pending(client, "ann")) == 3
            assert pending(client, "bob") == []
            server.kill()
            finder.killed.set()
            server.start()

            *_, last = client.follow_operation(begun.operation_id)

            assert (last.status, last.error_message) == (OperationStatus.COMPLETED, None)
            assert (last.processed_users, last.stats["total_generated"]) == (2, 6)
            assert finder.asked == Counter([*WINDOWS, "fact-bob-1"])
            assert [len(pending(client, user)) for user in ("ann", "bob")] == [3, 3]
            assert client.get_usage().usage[0].operation == "rerun"
