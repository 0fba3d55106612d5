"""Agent playbooks that say nearly the same as another one, or the opposite, so that a reviewer decides about both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reflexio.language.contradiction import contradicts
from reflexio.models.learning import Kind, Learning
from reflexio.ports.storage import LearningFilter, QueryVector, Tx

SHOWN = 5
LEAST_SIMILARITY = 0.6
"""Used as long as the pool was never clustered."""


@dataclass(frozen=True)
class NearDuplicate:
    """Another playbook, the cosine of both texts, and whether their advice contradicts."""

    playbook: Learning
    similarity: float
    contradicts: bool


def near_duplicates(tx: Tx, model: str, playbook: Learning) -> list[NearDuplicate]:
    """Current playbooks of the same agent version, whatever was decided about them, most similar first.

    They are as similar as the user playbooks of one cluster are. What it would replace is left out. A playbook without
    a vector of this embedder has none yet.
    """
    vector = tx.learnings.vectors([playbook.id], model).get(playbook.id)
    if vector is None:
        return []
    numbers = np.frombuffer(vector, np.float16).astype(np.float32).tolist()
    least = tx.pools.get(playbook.agent_version, playbook.name).similarity or LEAST_SIMILARITY
    left_out = {playbook.id, *playbook.details.get("replaces", [])}
    where = LearningFilter(Kind.AGENT_PLAYBOOK, agent_version=playbook.agent_version)
    nearest = tx.learnings.by_vector(where, QueryVector(model, tuple(numbers)), SHOWN + len(left_out))
    scores = {
        number: score
        for number, score in zip(nearest.ids, nearest.scores, strict=True)
        if number not in left_out and score >= least
    }
    rows = tx.learnings.many(list(scores)[:SHOWN])
    return [
        NearDuplicate(rows[number], scores[number], contradicts(rows[number].content, playbook.content))
        for number in scores
        if number in rows
    ]


@dataclass(frozen=True)
class NearPair:
    """Two playbooks that are near duplicates of each other."""

    first: Learning
    second: Learning
    similarity: float
    contradicts: bool


def near_pairs(tx: Tx, model: str, playbooks: Sequence[Learning]) -> list[NearPair]:
    """The pairs among these playbooks that `near_duplicates` would find, most similar first, in one read."""
    vectors = tx.learnings.vectors([playbook.id for playbook in playbooks], model)
    by_version: dict[str, list[Learning]] = {}
    for playbook in playbooks:
        if playbook.id in vectors:
            by_version.setdefault(playbook.agent_version, []).append(playbook)
    pairs = [pair for same_version in by_version.values() for pair in _pairs_among(tx, same_version, vectors)]
    return sorted(pairs, key=lambda pair: (-pair.similarity, pair.first.id, pair.second.id))


def _pairs_among(tx: Tx, playbooks: Sequence[Learning], vectors: Mapping[int, bytes]) -> Iterator[NearPair]:
    matrix = np.stack([np.frombuffer(vectors[playbook.id], np.float16) for playbook in playbooks]).astype(np.float32)
    cosines = matrix @ matrix.T
    np.fill_diagonal(cosines, -1.0)
    pools = {name: tx.pools.get(playbooks[0].agent_version, name) for name in {row.name for row in playbooks}}
    seen = set[tuple[int, int]]()
    for place, playbook in enumerate(playbooks):
        least = pools[playbook.name].similarity or LEAST_SIMILARITY
        for other_place in np.argsort(-cosines[place])[:SHOWN]:
            first, second = sorted((playbook, playbooks[other_place]), key=lambda row: row.id)
            similarity = float(cosines[place, other_place])
            is_successor = first.id in second.details.get("replaces", []) or second.id in first.details.get(
                "replaces", []
            )
            if similarity >= least and not is_successor and (first.id, second.id) not in seen:
                seen.add((first.id, second.id))
                yield NearPair(first, second, similarity, contradicts(first.content, second.content))
