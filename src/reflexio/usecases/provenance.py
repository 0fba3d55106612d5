"""Provenance: why a learning is there. Read from the row, its lineage and the turns that are still stored."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from reflexio.errors import NotFound
from reflexio.models.interaction import Interaction
from reflexio.models.learning import Kind, Learning
from reflexio.models.playbook import UserPlaybook
from reflexio.models.provenance import (
    GetLearningProvenanceRequest,
    LearningProvenanceResponse,
    LineageEntry,
    ProvenanceStatus,
    Replaced,
    SourceUserPlaybook,
)
from reflexio.models.status import Status
from reflexio.ports.storage import LearningFilter, LineageEvent, Store, Tx
from reflexio.retrieval.walk import every
from reflexio.usecases.learnings import WORDS, one

RETIRED = (Status.MERGED, Status.SUPERSEDED)
LARGEST = 2**63 - 1


async def provenance(store: Store, asked: GetLearningProvenanceRequest) -> LearningProvenanceResponse:
    """Raises NotFound when there is no such learning."""
    return await store.read(lambda tx: _told(tx, one(tx, _named(asked))))


def _named(asked: GetLearningProvenanceRequest) -> LearningFilter:
    if asked.kind is Kind.PROFILE:
        return LearningFilter(asked.kind, keys=(asked.id,))
    if not (asked.id.isascii() and asked.id.isdigit() and int(asked.id) <= LARGEST):
        raise NotFound(what=WORDS[asked.kind], id=asked.id)
    return LearningFilter(asked.kind, ids=(int(asked.id),))


def _told(tx: Tx, learning: Learning) -> LearningProvenanceResponse:
    details = learning.details
    turns, status = _evidence(tx, learning)
    sources = list(_sources(tx, learning))
    if sources:
        status = _worst(sources, details.get("source_windows", []))
    return LearningProvenanceResponse(
        target_kind=learning.kind,
        target_id=learning.public_id,
        provenance_status=status,
        trigger_request_id=learning.request_id or None,
        interactions=turns,
        source_user_playbooks=sources,
        source_span=details.get("source_span"),
        learner=details.get("learner"),
        fingerprint=details.get("fingerprint"),
        replaced=[_replaced(each) for each in _retired(tx, learning)],
        events=[entry(each) for each in tx.learnings.lineage(learning.id)],
    )


def _evidence(tx: Tx, learning: Learning) -> tuple[list[Interaction], ProvenanceStatus]:
    """The turns it cites; where it cites none, those of the publish it came with."""
    cited = learning.details.get("source_interaction_ids", [])
    if cited:
        found = _turns(tx, cited)
        return found, _status(found, cited)
    found = tx.interactions.of_requests([learning.request_id]) if learning.request_id else []
    return found, "best_effort" if found else "unavailable"


def _turns(tx: Tx, ids: Sequence[int]) -> list[Interaction]:
    found = tx.interactions.many(ids)
    return [found[each] for each in dict.fromkeys(ids) if each in found]


def _status(found: Sequence[Interaction], cited: Sequence[int]) -> ProvenanceStatus:
    if not found:
        return "unavailable"
    return "exact" if len(found) == len(set(cited)) else "best_effort"


def _sources(tx: Tx, learning: Learning) -> Iterator[SourceUserPlaybook]:
    windows = learning.details.get("source_windows", [])
    rows = tx.learnings.many([each["user_playbook_id"] for each in windows])
    for each in windows:
        row = rows.get(each["user_playbook_id"])
        if row is not None and row.kind is Kind.USER_PLAYBOOK:
            cited = each.get("source_interaction_ids") or row.details.get("source_interaction_ids", [])
            yield SourceUserPlaybook(
                user_playbook=UserPlaybook.of(row), interactions=_turns(tx, cited), source_interaction_ids=cited
            )


def _worst(sources: Sequence[SourceUserPlaybook], windows: Sequence[object]) -> ProvenanceStatus:
    whole = all(_status(each.interactions, each.source_interaction_ids) == "exact" for each in sources)
    return "exact" if whole and len(sources) == len(windows) else "best_effort"


def _retired(tx: Tx, learning: Learning) -> Iterator[Learning]:
    """What points to it as its successor."""
    where = LearningFilter(learning.kind, user_id=learning.user_id, statuses=RETIRED)
    for row in every(tx, where):
        if learning.public_id in (row.details.get("merged_into"), row.details.get("superseded_by")):
            yield row


def _replaced(row: Learning) -> Replaced:
    return Replaced(id=row.public_id, content=row.content, status=row.status, modified_at=row.modified_at)


def entry(event: LineageEvent) -> LineageEntry:
    return LineageEntry(**{name: value for name, value in asdict(event).items() if name in LineageEntry.model_fields})
