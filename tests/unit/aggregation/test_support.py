"""What counts as support of a cluster: users, and statements of which a repetition is none."""

import pytest

from reflexio.aggregation.support import Support, says_the_same, support_of
from reflexio.models.config import PlaybookAggregatorConfig
from reflexio.ports.storage import Member

ASK, PHOTO = "Ask the neighbours before you start a refund.", "Look at the photo that the driver took."


def member(number: int, user: str, content: str, session: str = "") -> Member:
    return Member(number, user, 1, 1, "", content, None, session)


@pytest.mark.parametrize(
    ("said", "statements", "users"),
    [
        ([], 0, 0),
        ([("ann", ASK, "")], 1, 1),
        ([("ann", ASK, ""), ("ann", ASK, "")], 1, 1),
        ([("ann", ASK, "a"), ("ann", "Please ask the neighbours before starting a refund!", "b")], 1, 1),
        ([("ann", ASK, "a"), ("ann", PHOTO, "b")], 2, 1),
        ([("ann", ASK, "a"), ("ann", PHOTO, "a")], 1, 1),
        ([("ann", ASK, "a"), ("bo", ASK, "a")], 2, 2),
        ([("ann", ASK, ""), ("ann", PHOTO, ""), ("ann", ASK, ""), ("bo", PHOTO, "")], 3, 2),
        ([("", ASK, ""), ("", PHOTO, "")], 2, 1),
    ],
)
def test_support(said: list[tuple[str, str, str]], statements: int, users: int) -> None:
    members = [member(number, *each) for number, each in enumerate(said)]
    assert support_of(members) == support_of(members[::-1]) == Support(statements, users)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ask for the order number.", "Always ask for the order number."),
        ("Send every invoice as a file.", "send each invoice as a file"),
        ("请先问邻居。", "请先问一下邻居。"),
        ("!!!", "???"),
    ],
)
def test_the_same_said_again(one: str, other: str) -> None:
    assert says_the_same(one, other)
    assert says_the_same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ask for the order number.", "Never ask for the order number."),
        ("Refund within 30 days.", "Refund within 60 days."),
        ("Ask the neighbours first.", "Ask the neighbours and look at the photo."),
        ("Use the metric system.", "Use the imperial system."),
        ("Reply in German.", "Reply in French."),
        (ASK, PHOTO),
        ("", ASK),
    ],
)
def test_what_is_something_else(one: str, other: str) -> None:
    assert not says_the_same(one, other)


def test_both_numbers_must_be_reached() -> None:
    settings = PlaybookAggregatorConfig(min_cluster_size=3, min_distinct_users=2)
    assert Support(3, 2).meets(settings)
    assert not Support(3, 1).meets(settings)
    assert not Support(2, 2).meets(settings)
    assert Support(2, 1).meets(PlaybookAggregatorConfig())
