"""Provenance, aggregation and review on the wire."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from reflexio.models.config import DEFAULT_PLAYBOOK
from reflexio.models.interaction import Interaction
from reflexio.models.learning import Kind, PlaybookStatus, Status, WireScope
from reflexio.models.operation import DEFAULT_VERSION, Operation, OperationStatus, OperationStatusInfo
from reflexio.models.paging import Cursor
from reflexio.models.playbook import AgentPlaybook, ReviewerRequest, UserPlaybook
from reflexio.models.wire import (
    MessageResponse,
    NoticeResponse,
    PageResponse,
    RequestModel,
    ResponseModel,
    RowId,
    Version,
)

NAMED_REVIEWER = "named_reviewer"
"""Where an event keeps the reviewer that the caller named, when the key has another owner."""
ProvenanceStatus = Literal["exact", "best_effort", "unavailable"]
LearningId = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255)]


class GetLearningProvenanceRequest(RequestModel):
    """Names a learning."""

    kind: Kind
    id: LearningId


class LineageEntry(ResponseModel):
    """An event in the lineage of a learning."""

    op: str
    at: int
    actor: str = ""
    reason: str = ""
    from_status: str = ""
    to_status: str = ""
    named_reviewer: str = ""


class Replaced(ResponseModel):
    """A learning that it replaced."""

    id: str
    content: str
    status: Status
    modified_at: int


class SourceUserPlaybook(ResponseModel):
    """A source of an agent playbook, with its turns."""

    user_playbook: UserPlaybook
    interactions: list[Interaction] = []
    source_interaction_ids: list[int] = []


class LearningProvenanceResponse(NoticeResponse):
    """The provenance of a learning."""

    target_kind: Kind
    target_id: str
    provenance_status: ProvenanceStatus = "unavailable"
    trigger_request_id: str | None = None
    interactions: list[Interaction] = []
    source_user_playbooks: list[SourceUserPlaybook] = []
    source_span: str | None = None
    learner: str | None = None
    fingerprint: str | None = None
    replaced: list[Replaced] = []
    events: list[LineageEntry] = []


class RunPlaybookAggregationRequest(RequestModel):
    """Selects the user playbooks to aggregate: one agent version, one type or all."""

    # Built at once: FastAPI reads this body, and ignores pydantic's warning about its alias only at import.
    model_config = ConfigDict(defer_build=False)

    agent_version: Version = DEFAULT_VERSION
    playbook_name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=255)] | None = None

    def type_among(self, names: list[str]) -> str | None:
        """The type that is meant; None means all. Earlier clients always send the default name."""
        name = self.playbook_name or None
        return None if name == DEFAULT_PLAYBOOK and name not in names else name


class RunPlaybookAggregationResponse(MessageResponse):
    """The result, or the state so far."""

    operation_id: str = ""
    is_complete: bool = False
    user_playbooks_processed: int = 0
    clusters_found: int = 0
    playbooks_generated: int = 0
    clusters_failed: int = 0

    @classmethod
    def of(cls, operation: Operation | OperationStatusInfo, operation_id: str) -> "RunPlaybookAggregationResponse":
        stats = operation.stats
        error = operation.error if isinstance(operation, Operation) else operation.error_message
        response = cls(
            success=operation.status in (OperationStatus.IN_PROGRESS, OperationStatus.COMPLETED),
            operation_id=operation_id,
            is_complete=operation.status is OperationStatus.COMPLETED,
            user_playbooks_processed=stats.get("user_playbooks_processed", 0),
            clusters_found=stats.get("clusters_found", 0),
            playbooks_generated=stats.get("total_generated", 0),
            clusters_failed=operation.failed_users,
        )
        return response.model_copy(update={"message": response._describe(operation.status, error or "")})

    def _describe(self, status: OperationStatus, error: str) -> str:
        counts = (
            f"Processed {self.user_playbooks_processed} user playbooks, found {self.clusters_found} clusters, "
            f"generated {self.playbooks_generated} agent playbooks"
        )
        failed = f"; {self.clusters_failed} clusters failed and are tried again" if self.clusters_failed else ""
        match status:
            case OperationStatus.COMPLETED:
                return counts + failed
            case OperationStatus.IN_PROGRESS:
                return f"{counts} so far; follow it by its operation_id{failed}"
            case OperationStatus.CANCELLED:
                return f"Cancelled. {counts}{failed}"
            case OperationStatus.FAILED:
                return f"Failed: {error} {counts}{failed}"


MOST_DECIDED = 1000
Ids = Annotated[list[RowId], Field(min_length=1, max_length=MOST_DECIDED)]


class GetReviewQueueRequest(RequestModel):
    """Selects playbooks to review: pending ones, or one by its id."""

    limit: Annotated[int, Field(gt=0, le=100)] = 20
    agent_playbook_id: RowId | None = None
    playbook_name: str | None = None
    agent_version: str | None = None
    scope: WireScope | None = None
    cursor: Cursor | None = None


class SupportingQuote(ResponseModel):
    """A user playbook, with the words it was learned from."""

    user_playbook_id: int
    user_id: str | None = None
    trigger: str | None = None
    content: str
    source_span: str | None = None


def taught_by(support: int | None) -> str:
    """How many users taught an agent playbook, in words. It names none of them.

    >>> taught_by(1), taught_by(3), taught_by(None)
    ('taught by one user', 'taught by 3 users', 'added by hand')
    """
    match support:
        case None:
            return "added by hand"
        case 0:
            return "taught by nobody who is still here"
        case 1:
            return "taught by one user"
        case _:
            return f"taught by {support} users"


class SimilarPlaybook(ResponseModel):
    """Another agent playbook of the same version that says nearly the same, or the opposite."""

    agent_playbook: AgentPlaybook
    similarity: float
    contradicts: bool = False


class ReviewItem(ResponseModel):
    """A playbook with its support and the disagreement about it.

    `difference` holds the lines that change, with + and -, where it would replace another one.
    """

    agent_playbook: AgentPlaybook
    support: int = 0
    taught_by: str = ""
    evidence_count: int = 0
    evidence: list[SupportingQuote] = []
    disagreement: list[SupportingQuote] = []
    near_duplicates: list[SimilarPlaybook] = []
    replaces: list[AgentPlaybook] = []
    difference: str = ""
    history: list[LineageEntry] = []


class GetReviewQueueResponse(PageResponse):
    """A page of the queue, newest first."""

    items: list[ReviewItem] = []
    pending_count: int = 0


class ReviewAgentPlaybooksRequest(ReviewerRequest):
    """One decision about several playbooks."""

    agent_playbook_ids: Ids
    playbook_status: PlaybookStatus


class UndoReviewRequest(ReviewerRequest):
    """Playbooks whose last decision is undone."""

    agent_playbook_ids: Ids


class ReviewResponse(NoticeResponse):
    """The result, and which other playbooks were retired or restored."""

    changed_count: int = 0
    retired_ids: list[int] = []
    restored_ids: list[int] = []
