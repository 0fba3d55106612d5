"""New against known: the neighbours of a candidate are found, decided about, and the decisions carried out."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from reflexio.models.learned import Candidate, Decision, Neighbour, Neighbourhood
from reflexio.models.learning import Kind, Learning
from reflexio.models.paging import Page
from reflexio.models.shape import NEVER_EXPIRES
from reflexio.models.status import Status
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import LearningFilter, LineageEvent, QueryVector, Store, Tx
from reflexio.retrieval.search import Question, search
from reflexio.retrieval.similar import ArmsOf

EVERYTHING, MOST_FORGOTTEN = "everything about the user", 10_000
"""What a learner writes when all is to be forgotten."""
NEAR, MOST_NEIGHBOURS = 0.4, 5
"""Cosine from which two learnings may be about the same, and how many neighbours are looked at."""


@dataclass(frozen=True)
class Origin:
    """Where learnings come from: the window, and who learned."""

    user_id: str
    agent_version: str
    source: str
    request_id: str
    turns: tuple[int, ...]
    learner: str
    fingerprint: str
    status: Status = Status.CURRENT


async def neighbourhoods(
    store: Store, embedder: Embedder, user_id: str, candidates: Sequence[Candidate], status: Status
) -> list[Neighbourhood]:
    """What is stored of this user next to each candidate, nearest first."""
    if not await store.read(lambda tx: _has_any(tx, user_id, candidates, status)):
        return [Neighbourhood(each, ()) for each in candidates]
    vectors = await embedder.embed([each.text for each in candidates])
    made = [QueryVector(embedder.name, tuple(vector.tolist())) for vector in vectors]

    def look(tx: Tx) -> list[list[Learning]]:
        return [_near(tx, user_id, each, vector, status) for each, vector in zip(candidates, made, strict=True)]

    found = await store.read(look)
    texts = [learning.text for near in found for learning in near]
    others = await embedder.embed(texts) if texts else vectors[:0]
    scored, at = [], 0
    for candidate, vector, near in zip(candidates, vectors, found, strict=True):
        cosines = (others[at : at + len(near)] @ vector).tolist()
        at += len(near)
        pairs = sorted(zip(near, cosines, strict=True), key=lambda pair: (-pair[1], pair[0].id))
        floor = -1.0 if candidate.content == EVERYTHING and candidate.forget else NEAR
        neighbours = [Neighbour(learning, cosine) for learning, cosine in pairs if cosine >= floor]
        scored.append(Neighbourhood(candidate, tuple(neighbours)))
    return scored


def _has_any(tx: Tx, user_id: str, candidates: Sequence[Candidate], status: Status) -> bool:
    kinds = {each.kind for each in candidates}
    return any(
        tx.learnings.page(LearningFilter(kind, user_id=user_id, statuses=(status,)), Page(1)).rows for kind in kinds
    )


def _near(tx: Tx, user_id: str, candidate: Candidate, vector: QueryVector, status: Status) -> list[Learning]:
    where = LearningFilter(candidate.kind, user_id=user_id, statuses=(status,))
    if candidate.forget and candidate.content == EVERYTHING:
        return list(tx.learnings.page(where, Page(MOST_FORGOTTEN)).rows)
    hits = search(ArmsOf(tx, where), Question(candidate.text, vector, top_k=MOST_NEIGHBOURS)).hits
    rows = tx.learnings.many([hit.id for hit in hits])
    return [rows[hit.id] for hit in hits if hit.id in rows]


def distinct(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Each said once, the first time."""
    seen: set[tuple[Kind, str, str]] = set()
    kept = []
    for each in candidates:
        said = (each.kind, " ".join(each.content.lower().split()), each.name)
        if said not in seen:
            seen.add(said)
            kept.append(each)
    return tuple(kept)


def learning(candidate: Candidate, decision: Decision, origin: Origin, now: int) -> Learning:
    """The row that a candidate becomes."""
    content = decision.content or candidate.content
    seconds = candidate.time_to_live.seconds
    profile = candidate.kind is Kind.PROFILE
    evidence = {
        "source_span": "\n".join(quote.text for quote in candidate.evidence),
        "source_interaction_ids": sorted({quote.turn_id for quote in candidate.evidence}),
        "window_interaction_ids": list(origin.turns),
        "learner": origin.learner,
        "fingerprint": origin.fingerprint,
    }
    named = {"extractor_names": [candidate.name], "profile_time_to_live": candidate.time_to_live.value}
    return Learning(
        kind=candidate.kind,
        key=_new_key() if profile else "",
        user_id=origin.user_id,
        agent_version="" if profile else origin.agent_version,
        name="" if profile else candidate.name,
        source=origin.source,
        request_id=origin.request_id,
        content=content,
        trigger=decision.trigger or candidate.trigger,
        rationale=decision.rationale or candidate.rationale,
        status=origin.status,
        details={**evidence, **(named if profile else {}), "metadata": candidate.metadata},
        created_at=now,
        modified_at=now,
        expires_at=now + seconds if profile and seconds else NEVER_EXPIRES,
    )


def _new_key() -> str:
    from uuid import uuid4

    return str(uuid4())


def carry_out(tx: Tx, decided: Sequence[tuple[Candidate, Decision]], origin: Origin, now: int) -> dict[str, int]:
    """All decisions of a window, within its transaction. Tells how many of each kind were added and updated."""
    counts = {"profiles_added": 0, "profiles_updated": 0, "playbooks_added": 0, "playbooks_updated": 0, "forgotten": 0}
    for candidate, decision in decided:
        word = "profiles" if candidate.kind is Kind.PROFILE else "playbooks"
        match decision.action:
            case "drop":
                continue
            case "forget":
                where = LearningFilter(candidate.kind, ids=decision.targets, user_id=origin.user_id)
                counts["forgotten"] += tx.learnings.remove(where)
            case "add" | "merge" | "replace":
                made = learning(candidate, decision, origin, now)
                (number,) = tx.learnings.add([made])
                made = dataclasses.replace(made, id=number)
                _note(tx, made, decision, origin, now)
                retired = _retire(tx, made, decision, origin, now)
                counts[f"{word}_{'updated' if retired else 'added'}"] += 1
    return counts


def _note(tx: Tx, made: Learning, decision: Decision, origin: Origin, now: int) -> None:
    reason = decision.reason or f"learned from turns {', '.join(map(str, made.details['source_interaction_ids']))}"
    tx.learnings.note(LineageEvent(made.id, made.kind, "learned", now, actor=origin.learner, reason=reason))


def _retire(tx: Tx, made: Learning, decision: Decision, origin: Origin, now: int) -> int:
    """The rows that the new one takes the place of are kept, out of sight, with a pointer to it."""
    status = Status.MERGED if decision.action == "merge" else Status.SUPERSEDED
    pointer = "merged_into" if decision.action == "merge" else "superseded_by"
    retired = 0
    for old in tx.learnings.many(decision.targets).values():
        if old.user_id != origin.user_id or old.kind is not made.kind or old.status is not origin.status:
            continue
        details = {**old.details, pointer: made.public_id}
        tx.learnings.replace(dataclasses.replace(old, status=status, details=details, modified_at=now))
        moved = (old.status.value, status.value)
        tx.learnings.note(
            LineageEvent(old.id, old.kind, str(decision.action), now, origin.learner, decision.reason, *moved)
        )
        retired += 1
    return retired
