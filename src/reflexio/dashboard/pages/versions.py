"""Two agent versions side by side: what came in, how much users had to teach, and which playbooks each has."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, takewhile

from markupsafe import Markup
from starlette.responses import Response

from reflexio.dashboard.forms import options, whole_number
from reflexio.dashboard.plots import Interval, forest_plot
from reflexio.dashboard.routing import Pages
from reflexio.dashboard.visit import Visit
from reflexio.interactions.sessions import agent_versions
from reflexio.models.access import KeyScope
from reflexio.models.learning import PlaybookStatus
from reflexio.organisations import version_comparison
from reflexio.organisations.configuration import stored_config
from reflexio.organisations.version_comparison import VersionComparison, VersionSummary

pages = Pages()

USUAL_DAYS, MOST_DAYS = 28, 366
PERIODS = (7, 28, 90)
MOST_PAIRED = 30
"""Versions among which a pair is chosen."""
DIGITS = re.compile(r"(\d{1,18})")
Z = 1.96
"""Standard deviations on each side of a 95 % interval."""


@dataclass(frozen=True)
class Measure:
    """A row of the comparison. `better` is "first" or "second" where the difference is more than chance, else empty."""

    name: str
    first: str
    second: str
    better: str = ""
    meaning: str = ""


@pages.get("/versions", KeyScope.READ)
async def versions(visit: Visit) -> Response:
    """Chooses two versions, by default the two that published last, and compares them."""
    days = whole_number(visit.asked("days"), USUAL_DAYS, least=1, most=MOST_DAYS)
    known = await agent_versions(visit.store)
    first, second = choose(known, visit.asked("first"), visit.asked("second"))
    name = visit.asked("type")
    comparison = None
    if first and second and first != second:
        comparison = await version_comparison.compare(
            visit.store, visit.parts.clock, first, second, days=days, name=name or None
        )
    config = await visit.store.read(stored_config)
    return visit.page(
        "versions.html",
        known=known,
        asked={"first": first, "second": second, "days": str(days), "type": name},
        choices=[(each, each) for each in sorted({first, second, *known} - {""})],
        types=options("All types", [entry.playbook_name for entry in config.playbook_configs], name),
        periods=periods(days),
        comparison=comparison,
        measures=measures(comparison) if comparison else [],
        verdict=verdict(comparison) if comparison else "",
        chart=difference_chart(comparison) if comparison else Markup(""),
    )


def choices(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, name) for name in sorted({*names} - {""})]


def periods(days: int) -> list[tuple[str, str]]:
    """The periods to choose from, with the one that was asked for."""
    return [(str(count), f"{count} days") for count in sorted({*PERIODS, days})]


def choose(known: Sequence[str], first: str, second: str) -> tuple[str, str]:
    """The versions that were asked for, else the two whose names are most alike: `shop-1` is compared with `shop-2`.

    Among pairs that are as much alike, the last ones in the order of their numbers are chosen.
    """
    names = sorted(known, key=_by_numbers, reverse=True)[:MOST_PAIRED]
    if first and second:
        return first, second
    if one := first or second:
        others = (name for name in names if name != one)
        partner = max(others, key=lambda name: _common_beginning(name, one), default="")
        return (first or partner), (second or partner)
    newer, older = max(combinations(names, 2), key=lambda pair: _common_beginning(*pair), default=("", ""))
    return older, newer


def _by_numbers(name: str) -> list[tuple[int, str]]:
    """Numbers inside a name count as numbers: `v10` comes after `v9`."""
    return [(int(part), "") if part.isdecimal() and part.isascii() else (0, part) for part in DIGITS.split(name[:100])]


def _common_beginning(one: str, other: str) -> int:
    """How many letters two names begin with in common, counting words and numbers whole."""
    pairs = zip(DIGITS.split(one), DIGITS.split(other), strict=False)
    return sum(len(first) for first, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def measures(comparison: VersionComparison) -> list[Measure]:
    """All figures of both versions."""
    one, two = comparison.first, comparison.second
    taught, helped = taught_difference(one, two), helped_difference(one, two)
    return [
        Measure("Requests", f"{one.requests.requests:,}", f"{two.requests.requests:,}"),
        Measure("Conversations", f"{one.requests.sessions:,}", f"{two.requests.sessions:,}"),
        Measure("Users", f"{one.requests.users:,}", f"{two.requests.users:,}"),
        Measure(
            "Requests in which a user taught something",
            _share_of(one.taught_share, one.teaching_requests),
            _share_of(two.taught_share, two.teaching_requests),
            _better(taught, is_less_better=True),
            "Users correct an agent that errs: fewer is better, among conversations of the same kind.",
        ),
        Measure("User playbooks learned", f"{one.taught:,}", f"{two.taught:,}"),
        *(
            Measure(f"Agent playbooks {review}", f"{one.by_review[review]:,}", f"{two.by_review[review]:,}")
            for review in PlaybookStatus
        ),
        Measure(
            "Playbooks in a prompt that helped",
            _share_of(one.helped_share, one.outcomes.helped),
            _share_of(two.helped_share, two.outcomes.helped),
            _better(helped, is_less_better=False),
            "Of the outcomes that were recorded as helped or hurt.",
        ),
        Measure("Taught once more although approved", f"{one.outcomes.repeated:,}", f"{two.outcomes.repeated:,}"),
    ]


@dataclass(frozen=True)
class Difference:
    """The share of the second version less that of the first, with its 95 % interval. All in percentage points."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        return self.low > 0 or self.high < 0


def difference(first: tuple[int, int], second: tuple[int, int]) -> Difference | None:
    """The difference of two shares, each given as a part and a whole; None when a whole is empty.

    Newcombe's interval: that of Wilson for each share, combined. It holds for small counts and for shares of 0 and 1.
    """
    if not first[1] or not second[1]:
        return None
    (one, one_low, one_high), (two, two_low, two_high) = _wilson(*first), _wilson(*second)
    value = two - one
    low = value - ((two - two_low) ** 2 + (one_high - one) ** 2) ** 0.5
    high = value + ((two_high - two) ** 2 + (one - one_low) ** 2) ** 0.5
    return Difference(100 * value, 100 * low, 100 * high)


def _wilson(part: int, whole: int) -> tuple[float, float, float]:
    """A share and its 95 % interval."""
    share = part / whole
    spread = Z * (share * (1 - share) / whole + Z**2 / (4 * whole**2)) ** 0.5
    middle, scale = share + Z**2 / (2 * whole), 1 + Z**2 / whole
    return share, max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def taught_difference(one: VersionSummary, two: VersionSummary) -> Difference | None:
    counts = [(min(each.teaching_requests, each.requests.requests), each.requests.requests) for each in (one, two)]
    return difference(counts[0], counts[1])


def helped_difference(one: VersionSummary, two: VersionSummary) -> Difference | None:
    counts = [(each.outcomes.helped, each.outcomes.helped + each.outcomes.hurt) for each in (one, two)]
    return difference(counts[0], counts[1])


def difference_chart(comparison: VersionComparison) -> Markup:
    """Both differences with their intervals."""
    rows = [
        _interval("Taught something", taught_difference(comparison.first, comparison.second)),
        _interval("Playbook helped", helped_difference(comparison.first, comparison.second)),
    ]
    return forest_plot(
        f"{comparison.second.requests.agent_version} compared with {comparison.first.requests.agent_version}",
        rows,
        unit="percentage points, with 95 % intervals",
        better="Right of zero: more often with the second version. An interval across zero may be chance.",
    )


def verdict(comparison: VersionComparison) -> str:
    """What the figures say, in one sentence."""
    one, two = (side.requests.agent_version for side in (comparison.first, comparison.second))
    taught = taught_difference(comparison.first, comparison.second)
    if taught is None:
        missing = one if not comparison.first.requests.requests else two
        return f"Nothing was published with {missing} in this time."
    if not taught.is_clear:
        return f"How often users had to teach {one} and {two} differs no more than chance would explain."
    fewer, more = (two, one) if taught.value < 0 else (one, two)
    return f"Users had to teach {fewer} less often than {more}: {abs(taught.value):.0f} percentage points."


def _interval(label: str, found: Difference | None) -> Interval:
    if found is None:
        return Interval(label, note="too little to compare")
    return Interval(label, round(found.value, 1), round(found.low, 1), round(found.high, 1))


def _better(found: Difference | None, *, is_less_better: bool) -> str:
    if found is None or not found.is_clear:
        return ""
    return "second" if (found.value < 0) == is_less_better else "first"


def _share_of(share: float | None, count: int) -> str:
    return "–" if share is None else f"{100 * share:.0f} % ({count:,})"
