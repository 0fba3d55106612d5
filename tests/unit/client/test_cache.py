"""What was read a moment ago need not be read again, unless this client changed it since."""

import pytest

from reflexio.client import cache
from reflexio.client.cache import Cache
from reflexio.models.interaction import GetInteractionsResponse, Interaction


class Ticks:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def answer(text: str = "x") -> GetInteractionsResponse:
    return GetInteractionsResponse(
        interactions=[Interaction(user_id="ann", request_id="r", created_at=1, content=text)]
    )


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def kept(ticks: Ticks) -> Cache:
    return Cache(600, monotonic=ticks)


def look(kept: Cache, topic: str = "profiles", question: str = "q") -> GetInteractionsResponse | None:
    return kept.get(topic, question, GetInteractionsResponse)


def put(kept: Cache, topic: str = "profiles", question: str = "q", text: str = "x") -> None:
    kept.put(topic, question, answer(text), kept.change(topic))


def test_an_answer_is_kept_for_its_time(kept: Cache, ticks: Ticks) -> None:
    put(kept)
    ticks.now = 599
    assert look(kept) == answer()
    ticks.now = 600
    assert look(kept) is None


def test_questions_and_topics_are_apart(kept: Cache) -> None:
    put(kept)
    assert look(kept, question="another") is None
    assert look(kept, topic="agent_playbooks") is None


def test_forgetting_a_topic_leaves_the_others(kept: Cache) -> None:
    put(kept)
    put(kept, "agent_playbooks")
    kept.forget("profiles")
    assert look(kept) is None
    assert look(kept, "agent_playbooks") is not None


def test_an_answer_on_its_way_while_forgotten_is_not_kept(kept: Cache) -> None:
    change = kept.change("profiles")
    kept.forget("profiles")
    kept.put("profiles", "q", answer("stale"), change)
    assert look(kept) is None
    put(kept, text="fresh")
    assert look(kept) == answer("fresh")


def test_what_a_caller_does_to_an_answer_is_its_own_business(kept: Cache) -> None:
    mine = answer()
    kept.put("profiles", "q", mine, kept.change("profiles"))
    mine.interactions.clear()
    first = look(kept)
    assert first is not None
    first.interactions.clear()
    assert look(kept) == answer()


def test_only_so_many_are_kept(kept: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_RESPONSES", 3)
    for number in range(5):
        put(kept, question=str(number))
    assert [look(kept, question=str(number)) is not None for number in range(5)] == [False, False, True, True, True]


def test_a_topic_that_the_server_is_changing_is_not_kept(kept: Cache, ticks: Ticks) -> None:
    put(kept)
    put(kept, "agent_playbooks")
    kept.pause("profiles")
    put(kept)
    assert look(kept) is None
    assert look(kept, "agent_playbooks") is not None
    ticks.now = 600
    put(kept)
    assert look(kept) is not None
