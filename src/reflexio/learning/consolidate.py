"""New learnings against stored ones: finds the neighbours of each, and applies the decisions about them.

What to decide (add, merge, replace, drop, forget) is the learner's task.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from reflexio.language.choices import chosen, other_choice
from reflexio.models.extraction import EVERYTHING, Decision, ExtractedLearning, Neighbour, Neighbourhood
from reflexio.models.learning import Kind, Learning, Scope, Status
from reflexio.models.paging import Page
from reflexio.ports.embedding import Embedder
from reflexio.ports.storage import NO_VECTORS, LearningFilter, LineageEvent, QueryVector, Store, TextVectors, Tx
from reflexio.retrieval.search import SearchableLearnings, SearchQuery, search

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

MOST_FORGOTTEN = 10_000
NEAR, MOST_NEIGHBOURS = 0.4, 5
"""The cosine from which two learnings may be about the same thing, and how many neighbours are considered."""
MOST_STANDING = 50
"""The newest standing orders of a user that a new one may take the place of, in other words or another language."""


@dataclass(frozen=True)
class Origin:
    """Where learnings come from: the window and the learner."""

    user_id: str
    agent_version: str
    source: str
    request_id: str
    turns: tuple[int, ...]
    learner: str
    fingerprint: str
    status: Status = Status.CURRENT


async def find_neighbours(
    store: Store, embedder: Embedder, user_id: str, candidates: Sequence[ExtractedLearning], status: Status
) -> list[Neighbourhood]:
    """The stored learnings of this user near each candidate, nearest first."""
    if not await store.read(lambda tx: _has_any(tx, user_id, candidates, status)):
        return [Neighbourhood(candidate, ()) for candidate in candidates]
    vectors = await embedder.embed([candidate.text for candidate in candidates])
    queries = [QueryVector(embedder.name, tuple(vector.tolist())) for vector in vectors]

    def read(tx: Tx) -> tuple[list[list[Learning]], dict[int, bytes]]:
        pairs = zip(candidates, queries, strict=True)
        stored = [_find_near(tx, user_id, candidate, query, status) for candidate, query in pairs]
        return stored, tx.learnings.vectors([learning.id for near in stored for learning in near], embedder.name)

    stored, known = await store.read(read)
    others = await _vectors_of({learning.id: learning for near in stored for learning in near}, known, embedder)
    neighbourhoods = []
    for candidate, vector, near in zip(candidates, vectors, stored, strict=True):
        cosines = [float(others[learning.id] @ vector) for learning in near]
        pairs = sorted(zip(near, cosines, strict=True), key=lambda pair: (-pair[1], pair[0].id))
        floor = -1.0 if candidate.content == EVERYTHING and candidate.forget else NEAR
        neighbours = [
            Neighbour(learning, cosine)
            for learning, cosine in pairs
            if cosine >= floor or _chooses_otherwise(candidate, learning)
        ]
        neighbourhoods.append(Neighbourhood(candidate, tuple(neighbours)))
    return neighbourhoods


async def _vectors_of(
    learnings: Mapping[int, Learning], known: Mapping[int, bytes], embedder: Embedder
) -> dict[int, "Vector"]:
    """The stored vectors of these rows; only rows that have none yet are embedded."""
    from numpy import float16, float32, frombuffer

    vectors: dict[int, Vector] = {number: frombuffer(blob, float16).astype(float32) for number, blob in known.items()}
    missing = [number for number in learnings if number not in vectors]
    if missing:
        embedded = await embedder.embed([learnings[number].text for number in missing])
        vectors |= dict(zip(missing, embedded, strict=True))
    return vectors


def _has_any(tx: Tx, user_id: str, candidates: Sequence[ExtractedLearning], status: Status) -> bool:
    kinds = {candidate.kind for candidate in candidates}
    return any(
        tx.learnings.page(LearningFilter(kind, user_id=user_id, statuses=(status,)), Page(1)).rows for kind in kinds
    )


def _find_near(
    tx: Tx, user_id: str, candidate: ExtractedLearning, vector: QueryVector, status: Status
) -> list[Learning]:
    where = LearningFilter(candidate.kind, user_id=user_id, statuses=(status,))
    if candidate.forget and candidate.content == EVERYTHING:
        return list(tx.learnings.page(where, Page(MOST_FORGOTTEN)).rows)
    hits = search(SearchableLearnings(tx, where), SearchQuery(candidate.text, vector, top_k=MOST_NEIGHBOURS)).hits
    rows = tx.learnings.many([hit.id for hit in hits])
    near = [rows[hit.id] for hit in hits if hit.id in rows]
    if not chosen(candidate.content) or candidate.trigger or candidate.forget:
        return near
    # An order in another language shares neither words nor meaning with the one that it replaces.
    standing = tx.learnings.page(dataclasses.replace(where, scope=Scope.ALWAYS), Page(MOST_STANDING)).rows
    return near + [row for row in standing if row.id not in rows and _chooses_otherwise(candidate, row)]


def _chooses_otherwise(candidate: ExtractedLearning, stored: Learning) -> bool:
    """Whether two standing orders choose differently on one matter, such as the language of answers."""
    if candidate.kind is not Kind.USER_PLAYBOOK or candidate.trigger or stored.trigger:
        return False
    return bool(other_choice(candidate.content, stored.content))


def without_duplicates(candidates: Sequence[ExtractedLearning]) -> tuple[ExtractedLearning, ...]:
    """The first of each kind, type and content."""
    first: dict[tuple[Kind, str, str], ExtractedLearning] = {}
    for candidate in candidates:
        first.setdefault((candidate.kind, " ".join(candidate.content.lower().split()), candidate.name), candidate)
    return tuple(first.values())


def scope_after(candidate: ExtractedLearning, decision: Decision, retired: Sequence[Learning]) -> Scope:
    """What always held goes on to hold when it is said anew; unless the new wording is for one situation only."""
    trigger = decision.trigger or candidate.trigger
    stood = any(old.scope is Scope.ALWAYS and (old.trigger or not trigger) for old in retired)
    return Scope.ALWAYS if stood else candidate.scope or Scope.WHEN_RELEVANT


def new_learning(
    candidate: ExtractedLearning, decision: Decision, origin: Origin, now: int, retired: Sequence[Learning] = ()
) -> Learning:
    """The row for a candidate that takes the place of the `retired` ones."""
    content = decision.content or candidate.content
    is_profile = candidate.kind is Kind.PROFILE
    evidence = {
        "source_span": "\n".join(quote.text for quote in candidate.evidence),
        "source_interaction_ids": sorted({quote.turn_id for quote in candidate.evidence}),
        "window_interaction_ids": list(origin.turns),
        "learner": origin.learner,
        "fingerprint": origin.fingerprint,
    }
    profile_details = {"extractor_names": [candidate.name], "profile_time_to_live": candidate.time_to_live.value}
    return Learning(
        kind=candidate.kind,
        key=str(uuid4()) if is_profile else "",
        user_id=origin.user_id,
        agent_version="" if is_profile else origin.agent_version,
        name="" if is_profile else candidate.name,
        source=origin.source,
        request_id=origin.request_id,
        content=content,
        trigger=decision.trigger or candidate.trigger,
        rationale=decision.rationale or candidate.rationale,
        status=origin.status,
        scope=scope_after(candidate, decision, retired),
        details={**evidence, **(profile_details if is_profile else {}), "metadata": candidate.metadata},
        created_at=now,
        modified_at=now,
        expires_at=candidate.expires_at(now),
    )


def apply_decisions(
    tx: Tx,
    decided: Sequence[tuple[ExtractedLearning, Decision]],
    origin: Origin,
    now: int,
    vectors: TextVectors = NO_VECTORS,
) -> dict[str, int]:
    """Applies all decisions of a window within its transaction; returns how many were added and updated."""
    counts = {"profiles_added": 0, "profiles_updated": 0, "playbooks_added": 0, "playbooks_updated": 0, "forgotten": 0}
    for candidate, decision in decided:
        counted = "profiles" if candidate.kind is Kind.PROFILE else "playbooks"
        match decision.action:
            case "drop":
                continue
            case "forget":
                where = LearningFilter(candidate.kind, ids=decision.targets, user_id=origin.user_id)
                counts["forgotten"] += tx.learnings.remove(where)
            case "add" | "merge" | "replace":
                retired = _targets(tx, candidate, decision, origin)
                added = new_learning(candidate, decision, origin, now, retired)
                (number,) = tx.learnings.add([added], vectors)
                added = dataclasses.replace(added, id=number)
                turns = ", ".join(map(str, added.details["source_interaction_ids"]))
                reason = decision.reason or f"learned from turns {turns}"
                tx.learnings.note(LineageEvent(number, added.kind, "learned", now, origin.learner, reason))
                _retire(tx, retired, added, decision, origin, now)
                counts[f"{counted}_{'updated' if retired else 'added'}"] += 1
    return counts


def _targets(tx: Tx, candidate: ExtractedLearning, decision: Decision, origin: Origin) -> list[Learning]:
    """The rows that the decision names, as far as they are the user's and in force."""
    rows = tx.learnings.many(decision.targets).values() if decision.targets else ()
    own = [row for row in rows if row.user_id == origin.user_id and row.kind is candidate.kind]
    return [row for row in own if row.status is origin.status]


def _retire(
    tx: Tx, retired: Sequence[Learning], successor: Learning, decision: Decision, origin: Origin, now: int
) -> None:
    """Retires the rows that the new one replaces: they are kept with a pointer to it, and not found any more."""
    status = Status.MERGED if decision.action == "merge" else Status.SUPERSEDED
    pointer = "merged_into" if decision.action == "merge" else "superseded_by"
    for old in retired:
        details = {**old.details, pointer: successor.public_id}
        tx.learnings.replace(dataclasses.replace(old, status=status, details=details, modified_at=now))
        moved = (old.status.value, status.value)
        tx.learnings.note(
            LineageEvent(old.id, old.kind, str(decision.action), now, origin.learner, decision.reason, *moved)
        )
