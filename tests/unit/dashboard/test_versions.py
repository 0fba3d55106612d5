"""Two versions compared: which two, and whether a difference is more than chance."""

import pytest

from reflexio.dashboard.pages.versions import choose, difference, measures, taught_difference, verdict
from reflexio.models.learning import PlaybookStatus
from reflexio.models.playbook import Outcomes
from reflexio.organisations.version_comparison import VersionComparison, VersionSummary
from reflexio.ports.storage import VersionRequests

BY_REVIEW = dict.fromkeys(PlaybookStatus, 0)


def summary(name: str, requests: int, teaching: int, **outcomes: int) -> VersionSummary:
    counted = VersionRequests(name, requests, requests, 9, 1)
    return VersionSummary(counted, teaching, teaching, BY_REVIEW, Outcomes(**outcomes))


def comparison(one: VersionSummary, two: VersionSummary) -> VersionComparison:
    return VersionComparison(one, two, (), (), ())


@pytest.mark.parametrize(
    ("names", "asked", "chosen"),
    [
        (["v2", "v1"], ("", ""), ("v1", "v2")),
        (["v1", "v10", "v9"], ("", ""), ("v9", "v10")),
        (["v1.9.0", "v1.10.0", "v1.11.0"], ("", ""), ("v1.10.0", "v1.11.0")),
        (["stay-1", "shop-2", "shop-1"], ("", ""), ("shop-1", "shop-2")),
        (["stay-1", "shop-2", "shop-1"], ("", "shop-2"), ("shop-1", "shop-2")),
        (["stay-1", "shop-2", "shop-1"], ("stay-1", ""), ("stay-1", "shop-2")),
        (["v2"], ("gone", "v2"), ("gone", "v2")),
        (["v1"], ("", ""), ("", "")),
        ([], ("", ""), ("", "")),
    ],
)
def test_the_versions_that_belong_together_are_compared(
    names: list[str], asked: tuple[str, str], chosen: tuple[str, str]
) -> None:
    assert choose(names, *asked) == chosen


@pytest.mark.parametrize(
    ("first", "second", "value", "low", "high"),
    [
        ((56, 70), (48, 80), -20.0, -33.4, -5.2),  # Newcombe 1998, table II: the two samples in the other order
        ((9, 10), (3, 10), -60.0, -80.9, -17.1),
        ((10, 10), (0, 10), -100.0, -100.0, -60.8),
        ((0, 10), (0, 20), 0.0, -27.8, 16.1),
    ],
)
def test_intervals_are_those_of_the_literature(
    first: tuple[int, int], second: tuple[int, int], value: float, low: float, high: float
) -> None:
    found = difference(first, second)
    assert found is not None
    assert found.value == pytest.approx(value, abs=0.05)
    assert found.low == pytest.approx(low, abs=0.06)
    assert found.high == pytest.approx(high, abs=0.06)


def test_nothing_is_said_about_nothing() -> None:
    assert difference((0, 0), (1, 2)) is None
    one, two = summary("v1", 0, 0), summary("v2", 8, 2)
    assert verdict(comparison(one, two)) == "Nothing was published with v1 in this time."
    assert all(not measure.better for measure in measures(comparison(one, two)))


def test_a_small_difference_is_called_chance() -> None:
    assert "chance" in verdict(comparison(summary("v1", 20, 6), summary("v2", 20, 4)))


def test_a_clear_difference_names_the_better_version() -> None:
    compared = comparison(summary("v1", 200, 120, helped=10, hurt=30), summary("v2", 200, 40, helped=30, hurt=10))
    assert verdict(compared) == "Users had to teach v2 less often than v1: 40 percentage points."
    assert {measure.name: measure.better for measure in measures(compared) if measure.better} == {
        "Requests in which a user taught something": "second",
        "Playbooks in a prompt that helped": "second",
    }


def test_more_teaching_requests_than_requests_are_taken_for_all() -> None:
    found = taught_difference(summary("v1", 5, 9), summary("v2", 5, 5))
    assert found is not None
    assert found.value == 0
