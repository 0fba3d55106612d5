"""What the rules found in a window: which candidates are kept, and which type each of them belongs to."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reflexio.language.words import content_words, overlap
from reflexio.learners.local.consolidation import replaces
from reflexio.learners.local.languages.changes import METADATA, stated_words
from reflexio.models.config import Config
from reflexio.models.extraction import ExtractedLearning, Quote
from reflexio.models.learning import Kind
from reflexio.ports.embedding import Embedder

MOST_KEPT = 12
MOST_COMPARED = 100
"""Candidates of a window that are compared with each other."""
SAME = 0.8
MOST_CACHED = 1000

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class RuleMatch:
    """A candidate that a rule found, without its type, and the weight with which it competes for a place."""

    weight: float
    candidate: ExtractedLearning


def playbook_match(
    weight: float, content: str, trigger: str, rationale: str, evidence: tuple[Quote, ...], **metadata: str
) -> RuleMatch:
    return RuleMatch(weight, ExtractedLearning(Kind.USER_PLAYBOOK, "", content, trigger, rationale, evidence, metadata))


def strongest(matches: Sequence[RuleMatch]) -> list[ExtractedLearning]:
    """At most `MOST_KEPT` candidates, strongest first, without repetitions; of equals, the first."""
    kept: list[ExtractedLearning] = []
    for match in sorted(matches, key=lambda match: -match.weight):
        candidate = match.candidate
        words = _words(candidate)
        is_repeated = any(candidate.kind is other.kind and overlap(words, _words(other)) >= SAME for other in kept)
        if len(kept) < MOST_KEPT and not is_repeated:
            kept.append(candidate)
    return kept


def _words(candidate: ExtractedLearning) -> frozenset[str]:
    """The words that carry meaning. A frame in another language makes any two statements alike."""
    language = candidate.metadata.get(METADATA)
    return stated_words(candidate.content, language) if language else content_words(candidate.content)


def most_telling(matches: Sequence[RuleMatch]) -> list[RuleMatch]:
    """At most `MOST_COMPARED`, in their order: of what is said twice the last, of many the strongest."""
    last = {_said(match): match for match in matches}
    distinct = [match for match in matches if match is last[_said(match)]]
    if len(distinct) <= MOST_COMPARED:
        return distinct
    least = sorted((match.weight for match in distinct), reverse=True)[MOST_COMPARED - 1]
    stronger = [match for match in distinct if match.weight > least]
    equal = [match for match in distinct if match.weight == least][-(MOST_COMPARED - len(stronger)) :]
    chosen = {id(match) for match in (*stronger, *equal)}
    return [match for match in distinct if id(match) in chosen]


def _said(match: RuleMatch) -> tuple[Kind, str, str]:
    return match.candidate.kind, match.candidate.content, match.candidate.trigger


def _replaced_pairs(matches: Sequence[RuleMatch]) -> list[tuple[RuleMatch, RuleMatch]]:
    """Each older match with a newer one that replaces it if the embedder agrees."""
    return [
        (older, newer)
        for place, newer in enumerate(matches)
        for older in matches[:place]
        if replaces(newer.candidate, older.candidate.kind, older.candidate.content, older.candidate.trigger, 1.0)
    ]


async def without_outdated(matches: Sequence[RuleMatch], embedder: Embedder) -> list[RuleMatch]:
    """Without what a later statement of the same conversation replaces: people change their minds."""
    # A long text makes thousands of them, and everybody waits for the event loop.
    matches = await asyncio.to_thread(most_telling, matches)
    pairs = await asyncio.to_thread(_replaced_pairs, matches)
    if not pairs:
        return list(matches)
    contents = list(dict.fromkeys(match.candidate.content for pair in pairs for match in pair))
    vectors = dict(zip(contents, await embedder.embed(contents), strict=True))
    outdated = []
    for older, newer in pairs:
        old, new = older.candidate, newer.candidate
        cosine = float(vectors[old.content] @ vectors[new.content])
        if replaces(new, old.kind, old.content, old.trigger, cosine):
            outdated.append(older)
    return [match for match in matches if not any(match is old for old in outdated)]


@dataclass(frozen=True)
class LearningType:
    """A configured type of profiles or playbooks: its name, and the text to which candidates are compared."""

    name: str
    label: str


class TypeClassifier:
    """Assigns candidates to types. Caches the vectors of the types, which are the same from window to window."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._labels: dict[str, Vector] = {}

    async def assign(self, candidates: Sequence[ExtractedLearning], config: Config) -> list[ExtractedLearning]:
        """Each candidate with the name of its nearest type, in order; of types equally near, the first.

        Candidates of a kind without types are dropped.
        """
        types = {kind: learning_types(config, kind) for kind in (Kind.PROFILE, Kind.USER_PLAYBOOK)}
        kept = [candidate for candidate in candidates if types[candidate.kind]]
        ambiguous = [candidate for candidate in kept if len(types[candidate.kind]) > 1]
        await self._cache({choice.label for candidate in ambiguous for choice in types[candidate.kind]})
        texts = list(dict.fromkeys(candidate.text for candidate in ambiguous))
        vectors = dict(zip(texts, await self._embedder.embed(texts), strict=True)) if texts else {}
        return [
            replace(candidate, name=self._nearest(types[candidate.kind], vectors.get(candidate.text)).name)
            for candidate in kept
        ]

    def _nearest(self, types: Sequence[LearningType], vector: Vector | None) -> LearningType:
        # A request to forget stands under both kinds with the same text: one kind may have a choice, the other not.
        if len(types) == 1 or vector is None:
            return types[0]
        return max(types, key=lambda learning_type: float(self._labels[learning_type.label] @ vector))

    async def _cache(self, labels: set[str]) -> None:
        new = sorted(labels - self._labels.keys())
        if not new:
            return
        vectors = await self._embedder.embed(new)
        if len(self._labels) + len(new) > MOST_CACHED:
            self._labels = {label: self._labels[label] for label in labels if label in self._labels}
        self._labels |= dict(zip(new, vectors, strict=True))


def learning_types(config: Config, kind: Kind) -> list[LearningType]:
    if kind is Kind.PROFILE:
        profiles = config.profile_extractor_configs
        definitions = [(profile.extractor_name, profile.extraction_definition_prompt) for profile in profiles]
    else:
        playbooks = config.playbook_configs
        definitions = [(playbook.playbook_name, playbook.playbook_definition_prompt) for playbook in playbooks]
    return [
        LearningType(name, f"{name.replace('_', ' ').replace('-', ' ')}: {' '.join(definition.split())}")
        for name, definition in definitions
    ]
