"""How well a cluster is supported: in how many statements, and by how many users. What one user says again counts once.

A cluster holds what was said about one matter. A user says it again in nearly the same words, or in the same session.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import SequenceMatcher

from reflexio.language.words import content_words, figures, is_negative, words
from reflexio.models.config import PlaybookAggregatorConfig
from reflexio.ports.storage import Cluster, Member

SAME_WORDS = 0.75
"""The share of the meaningful words of both texts that they have in common when they say the same."""
SAME_LETTERS = 0.8
"""The same for the letters of languages that write no spaces."""
FEW_WORDS = 2


@dataclass(frozen=True)
class Support:
    """The statements behind a cluster, and the users who made them."""

    statements: int
    users: int

    def meets(self, settings: PlaybookAggregatorConfig) -> bool:
        """Whether a playbook may be made of the cluster."""
        return self.statements >= settings.min_cluster_size and self.users >= settings.min_distinct_users


def support_of(members: Iterable[Member]) -> Support:
    by_user = defaultdict[str, list[Member]](list)
    for member in members:
        by_user[member.user_id].append(member)
    return Support(sum(map(_count_statements, by_user.values())), len(by_user))


def with_support(cluster: Cluster, members: Sequence[Member]) -> Cluster:
    """The cluster with its size and support as they are now."""
    return replace(cluster, size=len(members), **asdict(support_of(members)))


def _count_statements(members: Sequence[Member]) -> int:
    """How many different statements one user made."""
    distinct: list[Member] = []
    for member in members:
        if not any(_is_repetition(member, earlier) for earlier in distinct):
            distinct.append(member)
    return len(distinct)


def _is_repetition(one: Member, other: Member) -> bool:
    if one.session_id and one.session_id == other.session_id:
        return True
    return says_the_same(one.content, other.content)


def says_the_same(one: str, other: str) -> bool:
    """Whether two texts about one matter are nearly identical: the same words, numbers and negation.

    >>> says_the_same("Ask the neighbours first.", "Please ask the neighbours first!")
    True
    >>> says_the_same("Refund within 30 days.", "Refund within 60 days.")
    False
    """
    first, second = words(one), words(other)
    if first == second:
        return True
    if figures(one) != figures(other) or is_negative(first) != is_negative(second):
        return False
    if max(len(first), len(second)) <= FEW_WORDS:
        return SequenceMatcher(None, " ".join(first), " ".join(second)).ratio() >= SAME_LETTERS
    mine, theirs = content_words(one), content_words(other)
    return len(mine & theirs) >= SAME_WORDS * len(mine | theirs) > 0
