"""Aggregation on the wire."""

from typing import Annotated

from pydantic import ConfigDict, StringConstraints

from reflexio.models.config import DEFAULT_PLAYBOOK
from reflexio.models.generation import DEFAULT_VERSION
from reflexio.models.operation import Operation, OperationStatus, OperationStatusInfo
from reflexio.models.shape import Answered, Sent, Version


class RunPlaybookAggregationRequest(Sent):
    """Selects the user playbooks to aggregate: one agent version, one type or all."""

    # Built at once: FastAPI reads this body, and ignores pydantic's warning about its alias only at import.
    model_config = ConfigDict(defer_build=False)

    agent_version: Version = DEFAULT_VERSION
    playbook_name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=255)] | None = None

    def type_among(self, names: list[str]) -> str | None:
        """The type that is meant; None means all. Earlier clients always send the default name."""
        asked = self.playbook_name or None
        return None if asked == DEFAULT_PLAYBOOK and asked not in names else asked


class RunPlaybookAggregationResponse(Answered):
    """The result, or the state so far."""

    success: bool = True
    message: str = ""
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
        made = cls(
            success=operation.status in (OperationStatus.IN_PROGRESS, OperationStatus.COMPLETED),
            operation_id=operation_id,
            is_complete=operation.status is OperationStatus.COMPLETED,
            user_playbooks_processed=stats.get("user_playbooks_processed", 0),
            clusters_found=stats.get("clusters_found", 0),
            playbooks_generated=stats.get("total_generated", 0),
            clusters_failed=operation.failed_users,
        )
        return made.model_copy(update={"message": made._told(operation.status, error or "")})

    def _told(self, status: OperationStatus, error: str) -> str:
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
