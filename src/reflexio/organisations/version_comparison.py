"""Two agent versions side by side: what came in, how much users had to teach, and which playbooks each has.

Approved playbooks of the two versions that say nearly the same in nearly the same words are taken for one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from reflexio.language.words import content_words
from reflexio.models.learning import Kind, Learning, PlaybookStatus
from reflexio.models.paging import MOST, Page
from reflexio.models.playbook import Outcomes
from reflexio.ports.clock import Clock
from reflexio.ports.storage import LearningFilter, Store, TimeRange, Tx, VersionRequests

DAY = 86_400
SAME_WORDS = 0.6
"""Two playbooks that share this part of their words say the same."""
MOST_MATCHED = 200
"""The newest approved playbooks of each version that are compared: each is compared with each."""


@dataclass(frozen=True)
class VersionSummary:
    """One version in a time. `taught` counts user playbooks, `teaching_requests` the requests that they came from."""

    requests: VersionRequests
    taught: int = 0
    teaching_requests: int = 0
    by_review: dict[PlaybookStatus, int] = field(default_factory=dict)
    outcomes: Outcomes = field(default_factory=Outcomes)
    approved: tuple[Learning, ...] = ()

    @property
    def taught_share(self) -> float | None:
        """The part of the requests in which the user taught something; None without requests."""
        return self.teaching_requests / self.requests.requests if self.requests.requests else None

    @property
    def helped_share(self) -> float | None:
        counted = self.outcomes.helped + self.outcomes.hurt
        return self.outcomes.helped / counted if counted else None


@dataclass(frozen=True)
class VersionComparison:
    """Both versions, and their approved playbooks: in both, or in one of them only."""

    first: VersionSummary
    second: VersionSummary
    in_both: tuple[tuple[Learning, Learning], ...]
    only_first: tuple[Learning, ...]
    only_second: tuple[Learning, ...]


async def compare(
    store: Store, clock: Clock, first: str, second: str, *, days: int, name: str | None = None
) -> VersionComparison:
    """Compares two versions over the last days; with `name`, only playbooks of that type."""
    within = _last(clock, days)

    def read(tx: Tx) -> VersionComparison:
        counts = {counted.agent_version: counted for counted in tx.requests.by_version(within, (first, second))}
        one, other = (
            _summarise(tx, counts.get(version, VersionRequests(version, 0, 0, 0, 0)), within, name)
            for version in (first, second)
        )
        return VersionComparison(
            one, other, *match_playbooks(one.approved[:MOST_MATCHED], other.approved[:MOST_MATCHED])
        )

    return await store.read(read)


def _last(clock: Clock, days: int) -> TimeRange:
    return TimeRange(clock.now() - days * DAY, None)


def _summarise(tx: Tx, requests: VersionRequests, within: TimeRange, name: str | None) -> VersionSummary:
    version = requests.agent_version
    taught = LearningFilter(Kind.USER_PLAYBOOK, agent_version=version, name=name, statuses=None, within=within)

    def of_review(review: PlaybookStatus) -> LearningFilter:
        return LearningFilter(Kind.AGENT_PLAYBOOK, agent_version=version, name=name, reviews=(review,))

    approved = tuple(tx.learnings.page(of_review(PlaybookStatus.APPROVED), Page(MOST)).rows)
    return VersionSummary(
        requests,
        tx.learnings.count(taught),
        tx.learnings.count_requests(taught),
        {review: tx.learnings.count(of_review(review)) for review in PlaybookStatus},
        _sum_outcomes(approved),
        approved,
    )


def _sum_outcomes(playbooks: Iterable[Learning]) -> Outcomes:
    counted = [playbook.details.get("outcomes", {}) for playbook in playbooks]
    return Outcomes(**{name: sum(one.get(name, 0) for one in counted) for name in Outcomes.model_fields})


def match_playbooks(
    first: Sequence[Learning], second: Sequence[Learning]
) -> tuple[tuple[tuple[Learning, Learning], ...], tuple[Learning, ...], tuple[Learning, ...]]:
    """Pairs that say the same, and those of each side that have no partner. The most similar pair first."""
    words = {playbook.id: content_words(playbook.content) for playbook in (*first, *second)}
    likely = [
        (shared, one, other)
        for one in first
        for other in second
        if (shared := _shared(words[one.id], words[other.id])) >= SAME_WORDS
    ]
    pairs, taken = list[tuple[Learning, Learning]](), set[int]()
    for _, one, other in sorted(likely, key=lambda pair: (-pair[0], pair[1].id, pair[2].id)):
        if one.id not in taken and other.id not in taken:
            pairs.append((one, other))
            taken |= {one.id, other.id}
    alone = [tuple(playbook for playbook in side if playbook.id not in taken) for side in (first, second)]
    return tuple(pairs), alone[0], alone[1]


def _shared(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / len(first | second) if first and second else 0.0
