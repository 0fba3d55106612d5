"""The two ways to find learnings within a filter, for searches and for neighbours alike."""

from collections.abc import Sequence
from dataclasses import dataclass

from reflexio.ports.storage import LearningFilter, Matched, QueryVector, Tx


@dataclass(frozen=True)
class ArmsOf:
    tx: Tx
    where: LearningFilter

    def by_words(self, query: str, limit: int) -> Matched:
        return self.tx.learnings.by_words(self.where, query, limit)

    def by_vector(self, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched:
        return self.tx.learnings.by_vector(self.where, query, limit, also)
