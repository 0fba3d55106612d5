"""Operations: the progress and end of long work, and requests to cancel it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from pydantic import Field

from reflexio.models.shape import Answered, Name, Sent

ABANDONED_AFTER = 300
"""Seconds without a heartbeat after which the process of an operation counts as dead."""
ABANDONED = "Its process ended before it was done; start it again."


class OperationStatus(StrEnum):
    """The status of an operation. All but the first are final."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Operation:
    """One run of a service for an organisation."""

    id: str
    service_name: str
    params: dict[str, Any]
    started_at: int
    heartbeat_at: int
    status: OperationStatus = OperationStatus.IN_PROGRESS
    total_users: int = 0
    processed_users: int = 0
    failed_users: int = 0
    current_user_id: str = ""
    stats: dict[str, int] = field(default_factory=dict)
    error: str = ""
    completed_at: int = 0
    cancel_requested: bool = False

    @property
    def is_running(self) -> bool:
        return self.status is OperationStatus.IN_PROGRESS

    def is_abandoned(self, now: int) -> bool:
        # The absolute difference: a clock that was set back must not keep a dead operation alive.
        return self.is_running and abs(now - self.heartbeat_at) >= ABANDONED_AFTER

    def seen(self, now: int) -> "Operation":
        """The operation as callers see it: an abandoned one has failed."""
        if not self.is_abandoned(now):
            return self
        return self.ended(OperationStatus.FAILED, self.heartbeat_at, ABANDONED)

    def ended(self, status: OperationStatus, at: int, error: str = "") -> "Operation":
        return replace(self, status=status, completed_at=at, error=error, current_user_id="")


@dataclass(frozen=True)
class Outcome:
    """A user whose part of an operation is done, or failed with an error."""

    user_id: str
    error: str = ""


class FailedUser(Answered):
    """A user whose part of the work failed, and why."""

    user_id: str
    error: str


class OperationStatusInfo(Answered):
    """The progress of an operation."""

    service_name: str
    status: OperationStatus
    started_at: int
    completed_at: int | None = None
    total_users: int = 0
    processed_users: int = 0
    failed_users: int = 0
    current_user_id: str | None = None
    processed_user_ids: list[str] = []
    failed_user_ids: list[FailedUser] = []
    request_params: dict[str, Any] = {}
    stats: dict[str, int] = {}
    error_message: str | None = None
    progress_percentage: float = Field(default=0.0, ge=0.0, le=100.0)

    @property
    def has_ended(self) -> bool:
        return self.status is not OperationStatus.IN_PROGRESS

    @classmethod
    def of(cls, operation: Operation, outcomes: Sequence[Outcome] = ()) -> "OperationStatusInfo":
        return cls(
            service_name=operation.service_name,
            status=operation.status,
            started_at=operation.started_at,
            completed_at=operation.completed_at or None,
            total_users=operation.total_users,
            processed_users=operation.processed_users,
            failed_users=operation.failed_users,
            current_user_id=operation.current_user_id or None,
            processed_user_ids=[each.user_id for each in outcomes if not each.error],
            failed_user_ids=[FailedUser(user_id=each.user_id, error=each.error) for each in outcomes if each.error],
            request_params={**operation.params, "operation_id": operation.id},
            stats=operation.stats,
            error_message=operation.error or None,
            progress_percentage=_percentage(operation),
        )


def _percentage(operation: Operation) -> float:
    if operation.status is OperationStatus.COMPLETED:
        return 100.0
    through = operation.processed_users + operation.failed_users
    return min(100.0, round(100.0 * through / operation.total_users, 1)) if operation.total_users else 0.0


class GetOperationStatusResponse(Answered):
    """The newest operation of a service, if there is one."""

    success: bool = True
    operation_status: OperationStatusInfo | None = None
    msg: str | None = None


class CancelOperationRequest(Sent):
    """Names the operation to cancel."""

    service_name: Name | None = None


class CancelOperationResponse(Answered):
    """The operations that were asked to stop."""

    success: bool = True
    cancelled_services: list[str] = []
    msg: str | None = None
