"""The review queue: agent playbooks that wait for a person, each with its support and the disagreement about it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff

import numpy as np

from reflexio.aggregation.near_duplicates import NearDuplicate, near_duplicates
from reflexio.language.contradiction import contradicts
from reflexio.learning.provenance import lineage_entry
from reflexio.models.learning import Kind, Learning, PlaybookStatus
from reflexio.models.paging import MOST_BYTES, Position, page
from reflexio.models.playbook import AgentPlaybook
from reflexio.models.review import (
    GetReviewQueueRequest,
    GetReviewQueueResponse,
    ReviewItem,
    SimilarPlaybook,
    SupportingQuote,
    taught_by,
)
from reflexio.ports.storage import LearningFilter, QueryVector, Store, Tx
from reflexio.retrieval.filters import get_one
from reflexio.retrieval.search import SearchableLearnings, SearchQuery, search

SHOWN = 10
"""Quotes for and against each playbook."""
NEAREST = 30
"""User playbooks near a playbook that are checked for disagreement."""
WORDING = ("trigger", "content", "rationale")


async def review_queue(store: Store, model: str, request: GetReviewQueueRequest) -> GetReviewQueueResponse:
    """`model` is the name of the embedder in use."""
    return await store.read(lambda tx: _read_queue(tx, model, request))


@dataclass(frozen=True)
class ReviewList:
    """A page of the queue without its evidence, and how many wait in all."""

    playbooks: list[Learning]
    waiting_count: int
    next_cursor: str | None


async def review_list(store: Store, request: GetReviewQueueRequest) -> ReviewList:
    """Which playbooks wait, newest first. The evidence of each is asked for one by one."""
    where = _waiting(request)

    def read(tx: Tx) -> ReviewList:
        listing = tx.learnings.page(where, page(request.limit, request.cursor))
        return ReviewList(listing.rows, tx.learnings.count(where), listing.cursor)

    return await store.read(read)


def _read_queue(tx: Tx, model: str, request: GetReviewQueueRequest) -> GetReviewQueueResponse:
    pending = _waiting(request)
    waiting = tx.learnings.count(pending)
    if request.agent_playbook_id:
        playbook = get_one(tx, LearningFilter(Kind.AGENT_PLAYBOOK, ids=(request.agent_playbook_id,)))
        return GetReviewQueueResponse(items=[_item(tx, model, playbook)], pending_count=waiting)
    listing = tx.learnings.page(pending, page(request.limit, request.cursor))
    items, room = list[ReviewItem](), MOST_BYTES
    for playbook in listing.rows:
        item = _item(tx, model, playbook)
        room -= len(item.model_dump_json().encode())
        if items and room < 0:
            # Evidence makes an item many times as long as its playbook: the page ends before it.
            last = listing.rows[len(items) - 1]
            listing = replace(listing, end=Position(last.created_at, last.id))
            break
        items.append(item)
    return GetReviewQueueResponse(
        items=items,
        pending_count=waiting,
        msg=f"{waiting} agent playbook(s) wait for a decision",
        next_cursor=listing.cursor,
    )


def _waiting(request: GetReviewQueueRequest) -> LearningFilter:
    return LearningFilter(
        Kind.AGENT_PLAYBOOK,
        agent_version=request.agent_version,
        name=request.playbook_name,
        scope=request.scope,
        reviews=(PlaybookStatus.PENDING,),
    )


def _item(tx: Tx, model: str, playbook: Learning) -> ReviewItem:
    windows = playbook.details.get("source_windows", [])
    sources = tx.learnings.many([window["user_playbook_id"] for window in windows[:SHOWN]])
    old = tx.learnings.many(playbook.details.get("replaces", []))
    return ReviewItem(
        agent_playbook=AgentPlaybook.of(playbook),
        support=playbook.details.get("support", 0),
        taught_by=taught_by(playbook.details.get("support")),
        evidence_count=len(windows),
        evidence=_quotes(row for row in sources.values() if row.kind is Kind.USER_PLAYBOOK),
        disagreement=_quotes(_contradicting(tx, model, playbook)),
        near_duplicates=[_similar(near) for near in near_duplicates(tx, model, playbook)],
        replaces=[AgentPlaybook.of(row) for row in old.values()],
        difference="\n".join(difference(row, playbook) for row in old.values()),
        history=[lineage_entry(event) for event in tx.learnings.lineage(playbook.id)],
    )


def _quotes(rows: Iterable[Learning]) -> list[SupportingQuote]:
    return [
        SupportingQuote(
            user_playbook_id=row.id,
            user_id=row.user_id or None,
            trigger=row.trigger or None,
            content=row.content,
            source_span=row.details.get("source_span") or None,
        )
        for row in rows
    ]


def _similar(near: NearDuplicate) -> SimilarPlaybook:
    return SimilarPlaybook(
        agent_playbook=AgentPlaybook.of(near.playbook),
        similarity=round(near.similarity, 3),
        contradicts=near.contradicts,
    )


def _contradicting(tx: Tx, model: str, playbook: Learning) -> Sequence[Learning]:
    """User playbooks about the same topic that contradict it."""
    where = LearningFilter(Kind.USER_PLAYBOOK, agent_version=playbook.agent_version, name=playbook.name)
    query = SearchQuery(playbook.text, _cluster_centroid(tx, model, playbook), top_k=NEAREST)
    hits = search(SearchableLearnings(tx, where), query).hits
    rows = tx.learnings.many([hit.id for hit in hits])
    near = [rows[hit.id] for hit in hits if hit.id in rows]
    return [row for row in near if contradicts(row.content, playbook.content)][:SHOWN]


def _cluster_centroid(tx: Tx, model: str, playbook: Learning) -> QueryVector | None:
    """The centroid of its cluster, so that nothing has to be embedded for the search."""
    if not playbook.cluster:
        return None
    members = tx.pools.members(playbook.agent_version, playbook.name, model, (playbook.cluster,))
    vectors = [np.frombuffer(row.vector, np.float16).astype(np.float32) for row in members if row.vector]
    if not vectors:
        return None
    centroid = np.sum(vectors, axis=0)
    length = float(np.linalg.norm(centroid))
    return QueryVector(model, tuple((centroid / length).tolist())) if length else None


def difference(old: Learning, new: Learning) -> str:
    """The lines of the wording that change, marked with + and -.

    >>> difference(Learning(Kind.AGENT_PLAYBOOK, "Ask."), Learning(Kind.AGENT_PLAYBOOK, "Ask twice."))
    '- content: Ask.\\n+ content: Ask twice.'
    """
    before, after = ([f"{name}: {getattr(row, name)}" for name in WORDING] for row in (old, new))
    changes = list(unified_diff(before, after, n=0, lineterm=""))[2:]
    return "\n".join(f"{line[0]} {line[1:]}" for line in changes if not line.startswith("@@"))
