"""The review queue: agent playbooks that wait for a person, each with what speaks for and against it."""

from collections.abc import Iterable, Sequence
from difflib import unified_diff

import numpy as np

from reflexio.language.contradiction import contradicts
from reflexio.models.learning import Kind, Learning
from reflexio.models.paging import page
from reflexio.models.playbook import AgentPlaybook
from reflexio.models.review import GetReviewQueueRequest, GetReviewQueueResponse, ReviewItem, Testimony
from reflexio.models.status import PlaybookStatus
from reflexio.ports.storage import LearningFilter, QueryVector, Store, Tx
from reflexio.retrieval.search import Question, search
from reflexio.retrieval.similar import ArmsOf
from reflexio.usecases.learnings import one
from reflexio.usecases.provenance import entry

SHOWN = 10
"""Testimonies for each playbook."""
LOOKED_AT = 30
"""User playbooks next to a playbook among which somebody may disagree."""
WORDING = ("trigger", "content", "rationale")


async def queue(store: Store, model: str, asked: GetReviewQueueRequest) -> GetReviewQueueResponse:
    """`model` is that of the vectors in use."""
    return await store.read(lambda tx: _queue(tx, model, asked))


def _queue(tx: Tx, model: str, asked: GetReviewQueueRequest) -> GetReviewQueueResponse:
    pending = LearningFilter(
        Kind.AGENT_PLAYBOOK,
        agent_version=asked.agent_version,
        name=asked.playbook_name,
        reviews=(PlaybookStatus.PENDING,),
    )
    waiting = tx.learnings.count(pending)
    if asked.agent_playbook_id:
        named = one(tx, LearningFilter(Kind.AGENT_PLAYBOOK, ids=(asked.agent_playbook_id,)))
        return GetReviewQueueResponse(items=[_item(tx, model, named)], pending_count=waiting)
    found = tx.learnings.page(pending, page(asked.limit, asked.cursor))
    return GetReviewQueueResponse(
        items=[_item(tx, model, each) for each in found.rows],
        pending_count=waiting,
        msg=f"{waiting} agent playbook(s) wait for a decision",
        next_cursor=found.cursor,
    )


def _item(tx: Tx, model: str, playbook: Learning) -> ReviewItem:
    windows = playbook.details.get("source_windows", [])
    sources = tx.learnings.many([each["user_playbook_id"] for each in windows[:SHOWN]])
    old = tx.learnings.many(playbook.details.get("replaces", []))
    return ReviewItem(
        agent_playbook=AgentPlaybook.of(playbook),
        support=playbook.details.get("support", 0),
        evidence_count=len(windows),
        evidence=_told(each for each in sources.values() if each.kind is Kind.USER_PLAYBOOK),
        disagreement=_told(_against(tx, model, playbook)),
        replaces=[AgentPlaybook.of(each) for each in old.values()],
        difference="\n".join(difference(each, playbook) for each in old.values()),
        history=[entry(each) for each in tx.learnings.lineage(playbook.id)],
    )


def _told(rows: Iterable[Learning]) -> list[Testimony]:
    return [
        Testimony(
            user_playbook_id=row.id,
            user_id=row.user_id or None,
            trigger=row.trigger or None,
            content=row.content,
            source_span=row.details.get("source_span") or None,
        )
        for row in rows
    ]


def _against(tx: Tx, model: str, playbook: Learning) -> Sequence[Learning]:
    """User playbooks about the same matter that say the opposite."""
    where = LearningFilter(Kind.USER_PLAYBOOK, agent_version=playbook.agent_version, name=playbook.name)
    question = Question(playbook.text, _centre(tx, model, playbook), top_k=LOOKED_AT)
    hits = search(ArmsOf(tx, where), question).hits
    rows = tx.learnings.many([hit.id for hit in hits])
    near = [rows[hit.id] for hit in hits if hit.id in rows]
    return [each for each in near if contradicts(each.content, playbook.content)][:SHOWN]


def _centre(tx: Tx, model: str, playbook: Learning) -> QueryVector | None:
    """The middle of what it was made of, so that nothing need be embedded to look around it."""
    if not playbook.cluster:
        return None
    members = tx.pools.members(playbook.agent_version, playbook.name, model, (playbook.cluster,))
    vectors = [np.frombuffer(each.vector, np.float16).astype(np.float32) for each in members if each.vector]
    if not vectors:
        return None
    middle = np.sum(vectors, axis=0)
    length = float(np.linalg.norm(middle))
    return QueryVector(model, tuple((middle / length).tolist())) if length else None


def difference(old: Learning, new: Learning) -> str:
    """The lines of the wording that change, with + and -.

    >>> difference(Learning(Kind.AGENT_PLAYBOOK, "Ask."), Learning(Kind.AGENT_PLAYBOOK, "Ask twice."))
    '- content: Ask.\\n+ content: Ask twice.'
    """
    before, after = ([f"{name}: {getattr(each, name)}" for name in WORDING] for each in (old, new))
    changes = list(unified_diff(before, after, n=0, lineterm=""))[2:]
    return "\n".join(f"{line[0]} {line[1:]}" for line in changes if not line.startswith("@@"))
