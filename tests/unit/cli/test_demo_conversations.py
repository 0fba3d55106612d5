"""The conversations of the demo are the same for a seed, lie in four weeks, and are complete sentences."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from reflexio.cli.demo_shop.conversations import (
    ADDITIONS,
    DAYS,
    NEXT_SHOP,
    REVIEW,
    SHOP,
    STAY,
    TOPICS,
    DemoConversation,
    write_conversations,
)

END = datetime(2026, 3, 18, 15, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def conversations() -> list[DemoConversation]:
    return write_conversations(7, END)


def test_a_seed_decides_everything(conversations: list[DemoConversation]) -> None:
    assert write_conversations(7, END) == conversations
    assert write_conversations(8, END) != conversations


def test_they_fill_four_weeks_and_none_is_in_the_future(conversations: list[DemoConversation]) -> None:
    assert 250 < len(conversations) < 500
    starts = [conversation.started_at for conversation in conversations]
    assert starts == sorted(starts)
    assert starts[-1] < END.timestamp()
    assert starts[0] >= (END - timedelta(days=DAYS)).timestamp()
    assert len({start // 86_400 for start in starts}) == DAYS


def test_the_time_of_day_changes_nothing_that_was_before(conversations: list[DemoConversation]) -> None:
    evening = write_conversations(7, END.replace(hour=22))
    assert evening[: len(conversations) - 20] == conversations[: len(conversations) - 20]


def test_two_versions_run_side_by_side_before_one_takes_over(conversations: list[DemoConversation]) -> None:
    days: dict[str, set[int]] = {SHOP: set(), NEXT_SHOP: set(), STAY: set()}
    for conversation in conversations:
        days[conversation.agent_version].add(conversation.started_at // 86_400)
    assert days[SHOP] & days[NEXT_SHOP]
    assert max(days[SHOP]) < max(days[NEXT_SHOP])
    assert min(days[SHOP]) < min(days[NEXT_SHOP])


def test_every_sentence_is_filled_in(conversations: list[DemoConversation]) -> None:
    for conversation in conversations:
        for is_known in (True, False):
            turns = conversation.turns(is_known=is_known, retrieved=[])
            assert len(turns) >= 3
            assert all(turn.content and "{" not in turn.content for turn in turns)


def test_a_known_lesson_is_not_taught_again(conversations: list[DemoConversation]) -> None:
    taught = next(conversation for conversation in conversations if conversation.lesson)
    assert taught.lesson in [turn.content for turn in taught.turns(is_known=False, retrieved=[])]
    known = [turn.content for turn in taught.turns(is_known=True, retrieved=[])]
    assert taught.lesson not in known
    assert taught.wrong not in known


def test_there_are_several_languages_and_every_lesson_has_its_answers() -> None:
    assert Counter(topic.language for topic in TOPICS).keys() == {"en", "de", "es"}
    for topic in TOPICS:
        assert bool(topic.lessons) == bool(topic.wrong) == bool(topic.answers)
        assert len(topic.lessons) == len(set(topic.lessons))
    assert ADDITIONS
    assert len(REVIEW["reviewers"]) > 1
