"""Operations on the wire: progress and cancellation of long work, reruns, manual runs, upgrades and downgrades."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from reflexio.models.wire import (
    MessageResponse,
    Name,
    NonEmpty,
    NoticeResponse,
    RequestModel,
    ResponseModel,
    Source,
    TimeRangeRequest,
    Version,
)

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

    @property
    def percentage(self) -> float:
        if self.status is OperationStatus.COMPLETED:
            return 100.0
        through = self.processed_users + self.failed_users
        return min(100.0, round(100.0 * through / self.total_users, 1)) if self.total_users else 0.0

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
class UserProgress:
    """A user whose part of an operation is done, or failed with an error."""

    user_id: str
    error: str = ""


class FailedUser(ResponseModel):
    """A user whose part of the work failed, and why."""

    user_id: str
    error: str


class OperationStatusInfo(ResponseModel):
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
    def of(cls, operation: Operation, outcomes: Sequence[UserProgress] = ()) -> "OperationStatusInfo":
        return cls(
            **{name: getattr(operation, name) for name in _SAME_NAMES},
            completed_at=operation.completed_at or None,
            current_user_id=operation.current_user_id or None,
            processed_user_ids=[user.user_id for user in outcomes if not user.error],
            failed_user_ids=[FailedUser(user_id=user.user_id, error=user.error) for user in outcomes if user.error],
            request_params={**operation.params, "operation_id": operation.id},
            error_message=operation.error or None,
            progress_percentage=operation.percentage,
        )


_SAME_NAMES = ("service_name", "status", "started_at", "total_users", "processed_users", "failed_users", "stats")


class GetOperationStatusResponse(NoticeResponse):
    """The newest operation of a service, if there is one."""

    operation_status: OperationStatusInfo | None = None


class CancelOperationRequest(RequestModel):
    """Names the operation to cancel."""

    service_name: Name | None = None


class CancelOperationResponse(NoticeResponse):
    """The operations that were asked to stop."""

    cancelled_services: list[str] = []


DEFAULT_VERSION = "agent-v0"
Unused = Annotated[list[str], Field(max_length=1000)]


class ManualProfileGenerationRequest(RequestModel):
    """Selects users whose last turns are learned now, for profiles."""

    user_id: Name | None = None
    source: Source | None = None
    extractor_names: Unused | None = None


class ManualPlaybookGenerationRequest(RequestModel):
    """Selects turns that are learned now, for user playbooks."""

    agent_version: Version = DEFAULT_VERSION
    source: Source | None = None
    playbook_name: str | None = None


class RerunProfileGenerationRequest(ManualProfileGenerationRequest, TimeRangeRequest):
    """Selects turns from which profiles are learned again. All conditions apply."""

    only_unread: bool = False


class RerunPlaybookGenerationRequest(ManualPlaybookGenerationRequest, TimeRangeRequest):
    """Selects turns from which user playbooks are learned again. All conditions apply."""

    only_unread: bool = False


class ManualProfileGenerationResponse(NoticeResponse):
    """The result of the run."""

    profiles_generated: int | None = None


class ManualPlaybookGenerationResponse(NoticeResponse):
    """The result of the run."""

    playbooks_generated: int | None = None


class RerunProfileGenerationResponse(ManualProfileGenerationResponse):
    """Whether the rerun began, and the id of its operation."""

    operation_id: str = ""


class RerunPlaybookGenerationResponse(ManualPlaybookGenerationResponse):
    """Whether the rerun began, and the id of its operation."""

    operation_id: str = ""


ProfileIds = Annotated[list[NonEmpty], Field(max_length=10_000)]


@dataclass(frozen=True)
class Upgrade:
    """How many rows became current, were archived, and were deleted."""

    promoted: int = 0
    archived: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class Downgrade:
    """How many rows became current again, and how many were archived instead."""

    restored: int = 0
    demoted: int = 0


class _ProfileScope(RequestModel):
    user_id: Name | None = None
    profile_ids: ProfileIds | None = None
    only_affected_users: bool = False


class _PlaybookScope(RequestModel):
    agent_version: Version | None = None
    playbook_name: Name | None = None


class UpgradeProfilesRequest(_ProfileScope):
    """Selects pending profiles that become current. All conditions apply."""

    archive_current: bool = True


class DowngradeProfilesRequest(_ProfileScope):
    """Selects archived profiles that become current again. All conditions apply."""


class UpgradeUserPlaybooksRequest(_PlaybookScope):
    """Selects pending user playbooks that become current. All conditions apply."""

    archive_current: bool = True


class DowngradeUserPlaybooksRequest(_PlaybookScope):
    """Selects archived user playbooks that become current again. All conditions apply."""


class UpgradeProfilesResponse(MessageResponse):
    """The number of profiles that changed status."""

    profiles_archived: int = 0
    profiles_promoted: int = 0
    profiles_deleted: int = 0


class UpgradeUserPlaybooksResponse(MessageResponse):
    """The number of user playbooks that changed status."""

    user_playbooks_deleted: int = 0
    user_playbooks_archived: int = 0
    user_playbooks_promoted: int = 0


class DowngradeProfilesResponse(MessageResponse):
    """The number of profiles that changed status."""

    profiles_demoted: int = 0
    profiles_restored: int = 0


class DowngradeUserPlaybooksResponse(MessageResponse):
    """The number of user playbooks that changed status."""

    user_playbooks_demoted: int = 0
    user_playbooks_restored: int = 0
