"""Context: the text to put into the next prompt, and what is inside it."""

from reflexio.models.search import ContextItem, ContextRequest, ContextResponse, UnifiedSearchRequest
from reflexio.models.status import PlaybookStatus
from reflexio.ports.storage import Store
from reflexio.retrieval import context
from reflexio.retrieval.meaning import Meaning
from reflexio.usecases.search import everything

POOL = 20
"""Learnings of each kind that compete for the room."""


async def get_context(store: Store, meaning: Meaning, asked: ContextRequest, now: int) -> ContextResponse:
    """The text to inject. Approved and current only, unless pending ones are asked for by name."""
    allowed = [PlaybookStatus.APPROVED, PlaybookStatus.PENDING] if asked.include_pending else None
    question = UnifiedSearchRequest(
        query=asked.query,
        user_id=asked.user_id,
        agent_version=asked.agent_version,
        top_k=POOL,
        agent_playbook_status_filter=allowed,
    )
    found, mode = await everything(store, meaning, question, now)
    answers = (found.profiles, found.user_playbooks, found.agent_playbooks)
    candidates = [
        # A query without a word gives rows and no evidence for them.
        context.Candidate(row, hit)
        for answer in answers
        for row, hit in zip(answer.rows, answer.hits, strict=bool(answer.hits))
    ]
    made = context.compose(candidates, asked.max_tokens, query=asked.query, grade=meaning.grade)
    return ContextResponse(
        context=made.text,
        items=[ContextItem(kind=each.kind.value, id=each.public_id) for each in made.learnings],
        tokens=made.tokens,
        degraded=mode == "fts" or not found.complete,
    )
