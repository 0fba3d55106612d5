"""Whether a learning belongs into every prompt, or into those it bears on: decided when it is stored.

The words decide where they can. What they leave open is compared by its vector with prototypes of both scopes; when
the embedder does not answer, it belongs where it is relevant.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from reflexio.errors import ProviderError
from reflexio.language.standing import fact_holds_always, instruction_holds_always, prototypes
from reflexio.models.extraction import ExtractedLearning
from reflexio.models.learning import Kind, Learning, Scope
from reflexio.ports.embedding import Embedder
from reflexio.retrieval.immediate import WAIT_SECONDS

log = logging.getLogger("reflexio.scope")

NEAREST = 3
"""Prototypes of each scope that are compared: a single one may share a subject by chance."""
LONGEST_READ = 4_000
"""Characters that decide the scope by words. An import of long texts would keep all callers waiting."""
LEAST_LEAD = {Kind.PROFILE: 0.05}
"""How much nearer to what always holds a learning must be. An instruction without a case of its own needs no lead."""
OTHER_LEAD = -0.05


def scope_by_words(learning: Learning | ExtractedLearning) -> Scope | None:
    """None where the words do not decide."""
    content, trigger = learning.content[:LONGEST_READ], learning.trigger[:LONGEST_READ]
    is_fact = learning.kind is Kind.PROFILE
    always = fact_holds_always(content) if is_fact else instruction_holds_always(trigger, content)
    return None if always is None else Scope.ALWAYS if always else Scope.WHEN_RELEVANT


async def scopes_by_words(learnings: Sequence[Learning | ExtractedLearning]) -> list[Scope | None]:
    """The same for many: beside the event loop when they are long, so that callers are answered meanwhile."""
    if sum(len(learning.text) for learning in learnings) <= LONGEST_READ:
        return [scope_by_words(learning) for learning in learnings]
    return await asyncio.to_thread(lambda: [scope_by_words(learning) for learning in learnings])


async def scopes_without_vectors(learnings: Sequence[Learning | ExtractedLearning]) -> list[Scope]:
    """By words alone, where nobody can wait for vectors."""
    return [scope or Scope.WHEN_RELEVANT for scope in await scopes_by_words(learnings)]


class ScopeClassifier:
    """Decides scopes. The vectors of the prototypes are computed once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._prototypes: Any = None

    async def complete(self, candidates: Sequence[ExtractedLearning]) -> list[ExtractedLearning]:
        """The candidates, with a scope for each that the learner left undecided."""
        undecided = [candidate for candidate in candidates if candidate.scope is None]
        scopes = iter(await self.decide(undecided))
        return [candidate if candidate.scope else replace(candidate, scope=next(scopes)) for candidate in candidates]

    async def decide_in_time(self, learnings: Sequence[Learning]) -> list[Scope]:
        """The same for callers who wait: by words alone when the embedder does not answer soon."""
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                return await self.decide(learnings)
        return await scopes_without_vectors(learnings)

    async def decide(self, learnings: Sequence[Learning | ExtractedLearning]) -> list[Scope]:
        by_words = await scopes_by_words(learnings)
        unsure = [learning for learning, scope in zip(learnings, by_words, strict=True) if scope is None]
        by_meaning = iter(await self._by_meaning(unsure) if unsure else ())
        return [scope or next(by_meaning) for scope in by_words]

    async def _by_meaning(self, learnings: Sequence[Learning | ExtractedLearning]) -> list[Scope]:
        texts = [learning.text for learning in learnings]
        always, relevant = prototypes()
        try:
            if self._prototypes is None:
                self._prototypes = await self._embedder.embed([*always, *relevant])
            vectors = await self._embedder.embed(texts)
        except ProviderError as error:
            log.warning("%d scope(s) decided by words alone: %s", len(texts), error)
            return [Scope.WHEN_RELEVANT] * len(texts)
        cosines = vectors @ self._prototypes.T
        leads = _nearest(cosines[:, : len(always)]) - _nearest(cosines[:, len(always) :])
        return [
            Scope.ALWAYS if lead > LEAST_LEAD.get(learning.kind, OTHER_LEAD) else Scope.WHEN_RELEVANT
            for learning, lead in zip(learnings, leads.tolist(), strict=True)
        ]


def _nearest(cosines: Any) -> Any:
    """The mean of the greatest cosines of each row."""
    cosines.sort(axis=1)
    return cosines[:, -NEAREST:].mean(axis=1)
