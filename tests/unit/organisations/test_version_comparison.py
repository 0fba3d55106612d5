"""Playbooks of two versions are paired when they say the same, and shares are of what was counted."""

from reflexio.models.learning import Kind, Learning
from reflexio.models.playbook import Outcomes
from reflexio.organisations.version_comparison import VersionSummary, match_playbooks
from reflexio.ports.storage import VersionRequests


def playbook(number: int, content: str) -> Learning:
    return Learning(Kind.AGENT_PLAYBOOK, content, id=number)


ASK = playbook(1, "Ask the neighbours before you offer a refund.")
ASK_TOO = playbook(2, "Always ask the neighbours before offering a refund.")
SLOT = playbook(3, "Offer a two-hour slot for deliveries.")
DATES = playbook(4, "Write dates with the name of the month.")


def test_what_both_versions_have_is_paired_and_the_rest_is_left() -> None:
    assert match_playbooks([ASK, SLOT], [DATES, ASK_TOO]) == (((ASK, ASK_TOO),), (SLOT,), (DATES,))


def test_each_playbook_has_one_partner_at_most() -> None:
    again = playbook(5, ASK.content)
    pairs, only_first, only_second = match_playbooks([ASK, again], [ASK_TOO])
    assert len(pairs) == 1
    assert len(only_first) == 1
    assert not only_second


def test_nothing_is_compared_with_nothing() -> None:
    assert match_playbooks([], []) == ((), (), ())
    empty = playbook(6, "!")
    assert match_playbooks([empty], [empty]) == ((), (empty,), (empty,))


def test_shares_are_unknown_without_a_count() -> None:
    nothing = VersionSummary(VersionRequests("v1", 0, 0, 0, 0))
    assert nothing.taught_share is None
    assert nothing.helped_share is None
    some = VersionSummary(VersionRequests("v1", 8, 8, 3, 9), 3, 2, outcomes=Outcomes(helped=3, hurt=1))
    assert some.taught_share == 0.25
    assert some.helped_share == 0.75
