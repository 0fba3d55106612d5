"""The cache between a client's calls and the server."""

from contextlib import suppress
from typing import Any

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.errors import ServerFailed
from reflexio.models.profile import GetProfilesResponse
from tests.builders import turns


class Reading:
    """A client whose reads of one topic go through its cache, and how often the server was asked."""

    def __init__(self, **more: Any) -> None:
        self.asked = 0
        self.fails = False
        self.client = ReflexioClient(transport=httpx.MockTransport(self._answer), retries=0, **more)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/get_profiles":
            self.asked += 1
        if self.fails:
            return httpx.Response(503, json={"detail": "away"})
        return httpx.Response(200, json={"success": True, "msg": str(self.asked)})

    def read(self, *, force_refresh: bool = False) -> GetProfilesResponse:
        return self.client.get_profiles("ann", force_refresh=force_refresh)


@pytest.fixture
def reading() -> Reading:
    return Reading()


def test_the_same_question_is_asked_once(reading: Reading) -> None:
    assert reading.read() == reading.read()
    assert reading.asked == 1


def test_force_refresh_asks_again_and_keeps_the_new_answer(reading: Reading) -> None:
    reading.read()
    assert reading.read(force_refresh=True).msg == "2"
    assert reading.read().msg == "2"
    assert reading.asked == 2


@pytest.mark.parametrize("change", ["publish", "finalize", "clear", "delete all"])
def test_what_may_change_learnings_makes_the_client_ask_again(reading: Reading, change: str) -> None:
    reading.read()
    match change:
        case "publish":
            reading.client.publish_interaction("ann", turns())
        case "finalize":
            reading.client.finalize_session("ann", "s")
        case "clear":
            reading.client.clear_user_data("ann")
        case "delete all":
            reading.client.delete_all_interactions()
    reading.read()
    assert reading.asked == 2


@pytest.mark.parametrize("change", ["publish", "publish in vain", "finalize"])
def test_learning_takes_its_time_so_nothing_is_kept_meanwhile(reading: Reading, change: str) -> None:
    reading.read()
    reading.fails = change == "publish in vain"
    with suppress(ServerFailed):
        if change == "finalize":
            reading.client.finalize_session("ann", "s")
        else:
            reading.client.publish_interaction("ann", turns())
    reading.fails = False
    right_after, once_learned = reading.read(), reading.read()
    assert right_after != once_learned


def test_a_failure_is_not_kept() -> None:
    reading = Reading(fail_open=True)
    reading.fails = True
    assert not reading.read().success
    reading.fails = False
    assert reading.read().success
