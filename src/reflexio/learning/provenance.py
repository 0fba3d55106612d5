"""Provenance: why a learning exists, from the row, its lineage and the turns that are still stored."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from reflexio.models.interaction import Interaction
from reflexio.models.learning import Kind, Learning, Status
from reflexio.models.playbook import UserPlaybook
from reflexio.models.review import (
    NAMED_REVIEWER,
    GetLearningProvenanceRequest,
    LearningProvenanceResponse,
    LineageEntry,
    ProvenanceStatus,
    Replaced,
    SourceUserPlaybook,
)
from reflexio.ports.storage import LearningFilter, LineageEvent, Store, Tx
from reflexio.retrieval.filters import all_pages, by_public_id, get_one

RETIRED = (Status.MERGED, Status.SUPERSEDED)


async def provenance(store: Store, request: GetLearningProvenanceRequest) -> LearningProvenanceResponse:
    """Raises NotFound when there is no such learning."""
    return await store.read(lambda tx: _describe(tx, get_one(tx, by_public_id(request.kind, request.id))))


def _describe(tx: Tx, learning: Learning) -> LearningProvenanceResponse:
    details = learning.details
    turns, status = _evidence(tx, learning)
    sources = list(_sources(tx, learning))
    if sources:
        status = _weakest_status(sources, details.get("source_windows", []))
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
        replaced=[_replaced(row) for row in _predecessors(tx, learning)],
        events=[lineage_entry(event) for event in tx.learnings.lineage(learning.id)],
    )


def _evidence(tx: Tx, learning: Learning) -> tuple[list[Interaction], ProvenanceStatus]:
    """The turns it cites; if it cites none, those of the publish it came with."""
    cited = learning.details.get("source_interaction_ids", [])
    if cited:
        turns = _read_turns(tx, cited)
        return turns, _status(turns, cited)
    turns = tx.interactions.of_requests([learning.request_id]) if learning.request_id else []
    return turns, "best_effort" if turns else "unavailable"


def _read_turns(tx: Tx, ids: Sequence[int]) -> list[Interaction]:
    turns = tx.interactions.many(ids)
    return [turns[turn_id] for turn_id in dict.fromkeys(ids) if turn_id in turns]


def _status(turns: Sequence[Interaction], cited: Sequence[int]) -> ProvenanceStatus:
    if not turns:
        return "unavailable"
    return "exact" if len(turns) == len(set(cited)) else "best_effort"


def _sources(tx: Tx, learning: Learning) -> Iterator[SourceUserPlaybook]:
    windows = learning.details.get("source_windows", [])
    rows = tx.learnings.many([window["user_playbook_id"] for window in windows])
    for window in windows:
        row = rows.get(window["user_playbook_id"])
        if row is not None and row.kind is Kind.USER_PLAYBOOK:
            cited = window.get("source_interaction_ids") or row.details.get("source_interaction_ids", [])
            yield SourceUserPlaybook(
                user_playbook=UserPlaybook.of(row), interactions=_read_turns(tx, cited), source_interaction_ids=cited
            )


def _weakest_status(sources: Sequence[SourceUserPlaybook], windows: Sequence[object]) -> ProvenanceStatus:
    are_exact = all(_status(source.interactions, source.source_interaction_ids) == "exact" for source in sources)
    return "exact" if are_exact and len(sources) == len(windows) else "best_effort"


def _predecessors(tx: Tx, learning: Learning) -> Iterator[Learning]:
    """Retired rows that point to it as their successor."""
    where = LearningFilter(learning.kind, user_id=learning.user_id, statuses=RETIRED)
    for row in all_pages(tx, where):
        if learning.public_id in (row.details.get("merged_into"), row.details.get("superseded_by")):
            yield row


def _replaced(row: Learning) -> Replaced:
    return Replaced(id=row.public_id, content=row.content, status=row.status, modified_at=row.modified_at)


def lineage_entry(event: LineageEvent) -> LineageEntry:
    fields = {name: value for name, value in asdict(event).items() if name in LineageEntry.model_fields}
    return LineageEntry(**fields, named_reviewer=event.details.get(NAMED_REVIEWER, ""))
