"""Search: the learnings that fit a question.

Without an embedder that answers in time, words decide alone and the answer says so.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reflexio.models.interaction import Interaction
from reflexio.models.learning import Kind, Learning
from reflexio.models.paging import Page
from reflexio.models.search import (
    Explanation,
    SearchAgentPlaybooksRequest,
    SearchInteractionsRequest,
    SearchMode,
    SearchUserPlaybooksRequest,
    SearchUserProfilesRequest,
    UnifiedSearchRequest,
)
from reflexio.models.status import PlaybookStatus, Status
from reflexio.ports.storage import LearningFilter, Matched, QueryVector, Store, TurnFilter, Tx
from reflexio.retrieval.exam import Grade
from reflexio.retrieval.fusion import Hit
from reflexio.retrieval.meaning import Meaning
from reflexio.retrieval.search import Found, Question, search
from reflexio.retrieval.similar import ArmsOf
from reflexio.usecases.browse import time_range
from reflexio.usecases.learnings import reviews, statuses

APPROVED = (PlaybookStatus.APPROVED,)


@dataclass(frozen=True)
class Answer:
    """Rows of one kind, best first, with what put them there."""

    rows: tuple[Any, ...] = ()
    hits: tuple[Hit, ...] = ()
    complete: bool = True

    def explanations(self) -> list[Explanation]:
        if not self.hits:  # without a query there are rows, and no evidence for them
            return []
        return [
            Explanation(
                **_named(row),
                score=round(hit.score, 4),
                words_rank=hit.words_rank,
                words_score=round(hit.words_score, 4) if hit.words_rank else None,
                vector_score=None if hit.vector_score is None else round(hit.vector_score, 4),
                why=hit.why,
            )
            for row, hit in zip(self.rows, self.hits, strict=True)
        ]


def _named(row: Learning | Interaction) -> dict[str, str]:
    if isinstance(row, Interaction):
        return {"id": str(row.interaction_id), "kind": "interaction"}
    return {"id": row.public_id, "kind": row.kind.value}


@dataclass(frozen=True)
class _Turns:
    tx: Tx
    where: TurnFilter

    def by_words(self, query: str, limit: int) -> Matched:
        return self.tx.interactions.by_words(self.where, query, limit)

    def by_vector(self, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched:
        return self.tx.interactions.by_vector(self.where, query, limit, also)


def look_up(tx: Tx, where: LearningFilter, question: Question) -> Answer:
    """Learnings for a question; for an empty one, the newest."""
    if not question.text.strip():
        return Answer(tuple(tx.learnings.page(where, Page(question.top_k)).rows))
    return _loaded(search(ArmsOf(tx, where), question), tx.learnings.many)


def _loaded(found: Found, load: Any) -> Answer:
    rows = load([hit.id for hit in found.hits])
    hits = tuple(hit for hit in found.hits if hit.id in rows)
    return Answer(tuple(rows[hit.id] for hit in hits), hits, found.complete)


def _question(asked: Any, vector: QueryVector | None, grade: Grade) -> Question:
    return Question(asked.query or "", vector, asked.search_mode, asked.top_k or 10, asked.threshold, grade)


async def learnings(store: Store, meaning: Meaning, where: LearningFilter, asked: Any) -> tuple[Answer, str]:
    """The answer, and the mode that was really used."""
    vector = await meaning.of(asked.query or "", asked.search_mode)
    question = _question(asked, vector, meaning.grade)
    return await store.read(lambda tx: look_up(tx, where, question)), effective(asked, vector)


def effective(asked: Any, vector: QueryVector | None) -> str:
    wants_meaning = asked.search_mode is not SearchMode.FTS and bool((asked.query or "").strip())
    return "fts" if wants_meaning and vector is None else str(asked.search_mode)


def profiles(asked: SearchUserProfilesRequest, now: int) -> LearningFilter:
    return LearningFilter(
        Kind.PROFILE,
        user_id=asked.user_id,
        request_id=asked.generated_from_request_id,
        source=asked.source or None,
        within=time_range(asked.start_time, asked.end_time),
        tags=tuple(asked.tags or ()),
        alive_at=now,
    )


def user_playbooks(asked: SearchUserPlaybooksRequest) -> LearningFilter:
    return LearningFilter(
        Kind.USER_PLAYBOOK,
        user_id=asked.user_id,
        agent_version=asked.agent_version,
        name=asked.playbook_name,
        source=asked.source or None,
        statuses=statuses(asked.status_filter),
        within=time_range(asked.start_time, asked.end_time),
        tags=tuple(asked.tags or ()),
    )


def agent_playbooks(asked: SearchAgentPlaybooksRequest) -> LearningFilter:
    """Approved ones, unless the caller asks for others by name."""
    wanted = statuses(asked.status_filter)
    return LearningFilter(
        Kind.AGENT_PLAYBOOK,
        agent_version=asked.agent_version,
        name=asked.playbook_name,
        source=asked.source or None,
        statuses=wanted,
        or_in_review=Status.PENDING in wanted,
        reviews=reviews(asked.playbook_status_filter) or _implied(wanted),
        within=time_range(asked.start_time, asked.end_time),
        tags=tuple(asked.tags or ()),
    )


def _implied(wanted: Sequence[Status]) -> tuple[PlaybookStatus, ...] | None:
    """The decisions that go with a `status_filter`. To ask for what is no longer current is to ask for all of it."""
    if Status.PENDING in wanted:
        return (PlaybookStatus.APPROVED, PlaybookStatus.PENDING)
    return APPROVED if Status.CURRENT in wanted else None


async def interactions(store: Store, meaning: Meaning, asked: SearchInteractionsRequest) -> tuple[Answer, str]:
    vector = await meaning.of(asked.query or "", asked.search_mode)
    question = _question(asked, vector, meaning.grade)

    def look(tx: Tx) -> Answer:
        where = TurnFilter(asked.user_id, asked.request_id, time_range(asked.start_time, asked.end_time))
        if not question.text.strip():
            most = min(question.top_k, asked.most_recent_k or question.top_k)
            newest = tx.interactions.newest(where, most)
            rows = tx.interactions.many(newest)
            return Answer(tuple(rows[each] for each in newest))
        if asked.most_recent_k:
            where = dataclasses.replace(where, ids=tuple(tx.interactions.newest(where, asked.most_recent_k)))
        return _loaded(search(_Turns(tx, where), question), tx.interactions.many)

    return await store.read(look), effective(asked, vector)


@dataclass(frozen=True)
class Unified:
    profiles: Answer = Answer()
    user_playbooks: Answer = Answer()
    agent_playbooks: Answer = Answer()

    @property
    def complete(self) -> bool:
        return self.profiles.complete and self.user_playbooks.complete and self.agent_playbooks.complete


def unified(tx: Tx, asked: UnifiedSearchRequest, question: Question, now: int) -> Unified:
    """Facts about the user, what the user taught, and what a person approved for everybody.

    Without a user there are only the approved ones: what one user taught is nobody else's business, unless the
    caller names it in `entity_types`.
    """
    wanted = asked.entity_types or None
    own = asked.user_id is not None
    shared = {"agent_version": asked.agent_version, "name": asked.playbook_name, "tags": tuple(asked.tags or ())}
    source = asked.source or None
    found = Unified()
    if wanted is None or "agent_playbooks" in wanted:
        allowed = tuple(asked.agent_playbook_status_filter or APPROVED)
        where = LearningFilter(Kind.AGENT_PLAYBOOK, reviews=allowed, source=source, **shared)  # type: ignore[arg-type]
        found = dataclasses.replace(found, agent_playbooks=look_up(tx, where, question))
    if own and (wanted is None or "profiles" in wanted):
        tags = tuple(asked.tags or ())
        where = LearningFilter(Kind.PROFILE, user_id=asked.user_id, source=source, tags=tags, alive_at=now)
        found = dataclasses.replace(found, profiles=look_up(tx, where, question))
    if (own and wanted is None) or "user_playbooks" in (wanted or ()):
        where = LearningFilter(Kind.USER_PLAYBOOK, user_id=asked.user_id, source=source, **shared)  # type: ignore[arg-type]
        kept = _not_covered(tx, where, question, found.agent_playbooks.rows)
        found = dataclasses.replace(found, user_playbooks=kept)
    return found


def _not_covered(tx: Tx, where: LearningFilter, question: Question, instead: Sequence[Learning]) -> Answer:
    """User playbooks that no returned agent playbook repeats, looked for until there are enough."""
    covered = _covered(instead)
    wanted = question.top_k + len(covered)
    while True:
        looked = look_up(tx, where, dataclasses.replace(question, top_k=wanted))
        kept = _uncovered(looked, covered, instead, question.top_k)
        if len(kept.rows) == question.top_k or len(looked.rows) < wanted:
            return kept
        wanted *= 4


def _covered(agent_playbooks: Sequence[Learning]) -> set[int]:
    """User playbooks that these agent playbooks were made of."""
    windows = [window for each in agent_playbooks for window in each.details.get("source_windows", [])]
    return {int(window["user_playbook_id"]) for window in windows}


def _uncovered(found: Answer, covered: set[int], instead: Sequence[Learning], top_k: int) -> Answer:
    said = {each.text for each in instead}
    kept = [place for place, row in enumerate(found.rows) if row.id not in covered and row.text not in said][:top_k]
    hits = tuple(found.hits[place] for place in kept) if found.hits else ()
    return Answer(tuple(found.rows[place] for place in kept), hits, found.complete)


async def everything(store: Store, meaning: Meaning, asked: UnifiedSearchRequest, now: int) -> tuple[Unified, str]:
    vector = await meaning.of(asked.query, asked.search_mode)
    question = Question(asked.query, vector, asked.search_mode, asked.top_k or 5, asked.threshold, meaning.grade)
    return await store.read(lambda tx: unified(tx, asked, question, now)), effective(asked, vector)
