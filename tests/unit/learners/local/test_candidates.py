"""Which candidates of a window are compared: few, whatever a long text repeats, and the last of equals."""

import threading

import pytest

from reflexio.learners.local import candidates
from reflexio.learners.local.candidates import MOST_COMPARED, RuleMatch, most_telling, playbook_match, without_outdated
from reflexio.providers.scripted import ScriptedEmbedder


def match(content: str, weight: float = 1.0) -> RuleMatch:
    return playbook_match(weight, content, "", "", ())


def test_of_what_is_said_twice_the_last_counts() -> None:
    first, other, last = match("Write in English."), match("Write in German."), match("Write in English.")
    assert most_telling([first, other, last]) == [other, last]


def test_of_many_the_strongest_and_then_the_newest_are_kept_in_their_order() -> None:
    weak, strong = [match(f"weak {n}") for n in range(500)], match("strong", 2.0)
    kept = most_telling([*weak[:100], strong, *weak[100:]])
    assert kept == [strong, *weak[-(MOST_COMPARED - 1) :]]


async def test_the_statements_of_a_long_text_are_compared_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[str] = []

    def replaces(*_: object) -> bool:
        threads.append(threading.current_thread().name)
        return False

    monkeypatch.setattr(candidates, "replaces", replaces)
    kept = await without_outdated([match(f"rule number {n}") for n in range(5000)], ScriptedEmbedder())
    assert len(kept) == MOST_COMPARED
    assert len(threads) == MOST_COMPARED * (MOST_COMPARED - 1) // 2
    assert threading.main_thread().name not in threads
