"""Agent playbooks that say nearly the same as another one, or the opposite, so that a reviewer decides about both."""

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
