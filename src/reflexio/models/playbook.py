"""Playbooks on the wire: of one user and of an agent, with their outcomes."""

import json
from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, WithJsonSchema, field_validator

from reflexio.models.learning import Kind, Learning, PlaybookStatus, Scope, Status, WireScope, WireStatus
from reflexio.models.profile import MOST_ADDED, Content, LearningSelection, NewLearning, NewUserLearning, Text, TurnIds
from reflexio.models.wire import (
    Epoch,
    JsonObject,
    Name,
    PageResponse,
    RequestModel,
    ResponseModel,
    RowId,
    Version,
    epoch_now,
)

Outcome: TypeAlias = Literal["helped", "hurt", "repeated"]
Ids = Annotated[list[RowId], Field(max_length=1000)]


class Outcomes(ResponseModel):
    """How often it helped, hurt, and was learned once more."""

    helped: int = 0
    hurt: int = 0
    repeated: int = 0


class RecordOutcomeRequest(RequestModel):
    """An outcome of playbooks."""

    outcome: Outcome
    user_playbook_ids: Ids = []
    agent_playbook_ids: Ids = []


USER_DETAILS = ("blocking_issue", "source_interaction_ids", "source_span", "notes", "reader_angle", "metadata")
AGENT_DETAILS = ("blocking_issue", "playbook_metadata", "source_windows")
PlaybookName = Annotated[str, StringConstraints(max_length=255)]
Stored = Annotated[int, Field(ge=0, le=2**63 - 1)]
_ANY_METADATA = {"anyOf": [{"type": "string", "maxLength": 100_000}, {"type": "object"}]}
Metadata = Annotated[Text, WithJsonSchema(_ANY_METADATA)]


class BlockingIssueKind(StrEnum):
    """The kind of obstacle."""

    MISSING_TOOL = "missing_tool"
    PERMISSION_DENIED = "permission_denied"
    EXTERNAL_DEPENDENCY = "external_dependency"
    POLICY_RESTRICTION = "policy_restriction"


class BlockingIssue(RequestModel):
    """What prevented the task."""

    kind: BlockingIssueKind
    details: Text


class SourceWindow(RequestModel):
    """The turns that one user playbook was learned from."""

    user_playbook_id: RowId
    source_interaction_ids: TurnIds = []


class NewPlaybook(NewLearning):
    """What new playbooks have in common."""

    playbook_name: PlaybookName = "playbook"
    agent_version: Version = ""
    created_at: Epoch = Field(default_factory=epoch_now)
    trigger: Text | None = None
    rationale: Text | None = None
    blocking_issue: BlockingIssue | None = None
    merged_into: Stored | None = None
    superseded_by: Stored | None = None

    def _playbook(self, kind: Kind, now: int, details: Collection[str], **values: Any) -> Learning:
        return self._learning(
            kind,
            name=self.playbook_name,
            agent_version=self.agent_version,
            trigger=self.trigger or "",
            rationale=self.rationale or "",
            details=self.model_dump(mode="json", include=set(details), exclude_none=True),
            created_at=self.created_at,
            modified_at=now,
            **values,
        )


class NewUserPlaybook(NewPlaybook, NewUserLearning):
    """A user playbook as a caller adds it."""

    user_playbook_id: Stored = 0
    user_id: Name | None = None
    request_id: Annotated[str, StringConstraints(max_length=255)] = ""
    metadata: JsonObject | None = None

    def learning(self, now: int) -> Learning:
        owner = {"user_id": self.user_id or "", "request_id": self.request_id}
        return self._playbook(Kind.USER_PLAYBOOK, now, USER_DETAILS, **owner)


class NewAgentPlaybook(NewPlaybook):
    """An agent playbook as a caller adds it."""

    agent_playbook_id: Stored = 0
    playbook_status: PlaybookStatus = PlaybookStatus.PENDING
    playbook_metadata: Metadata = ""
    source_windows: Annotated[list[SourceWindow], Field(max_length=1000)] = []

    @field_validator("playbook_metadata", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return json.dumps(value) if isinstance(value, dict) else value

    def learning(self, now: int) -> Learning:
        return self._playbook(Kind.AGENT_PLAYBOOK, now, AGENT_DETAILS, review=self.playbook_status)


class StoredPlaybook(ResponseModel):
    """What stored playbooks have in common."""

    playbook_name: str = ""
    agent_version: str = ""
    created_at: int = 0
    content: str = ""
    trigger: str | None = None
    rationale: str | None = None
    blocking_issue: BlockingIssue | None = None
    status: WireStatus = Status.CURRENT
    source: str | None = None
    tags: list[str] = []
    scope: Scope = Scope.WHEN_RELEVANT
    outcomes: Outcomes | None = None

    def _with(self, learning: Learning, **values: Any) -> Self:
        """The playbook with the values of a learning. To copy an empty one is faster than `model_construct`."""
        issue, outcomes = learning.details.get("blocking_issue"), learning.details.get("outcomes")
        values |= {
            "playbook_name": learning.name,
            "agent_version": learning.agent_version,
            "created_at": learning.created_at,
            "content": learning.content,
            "trigger": learning.trigger or None,
            "rationale": learning.rationale or None,
            "blocking_issue": BlockingIssue.model_validate(issue) if issue else None,
            "status": learning.status,
            "source": learning.source or None,
            "tags": list(learning.tags),
            "scope": learning.scope,
            "outcomes": Outcomes.model_construct(**outcomes) if outcomes else None,
        }
        return self.model_copy(update=values)


class UserPlaybook(StoredPlaybook):
    """What one user taught: when it applies, what to do, and why."""

    user_playbook_id: int = 0
    user_id: str | None = None
    request_id: str = ""
    metadata: dict[str, Any] = {}
    source_interaction_ids: list[int] = []
    source_span: str | None = None

    @staticmethod
    def of(learning: Learning) -> "UserPlaybook":
        details = learning.details
        return _EMPTY_USER_PLAYBOOK._with(
            learning,
            user_playbook_id=learning.id,
            user_id=learning.user_id or None,
            request_id=learning.request_id,
            metadata=details.get("metadata", {}),
            source_interaction_ids=details.get("source_interaction_ids", []),
            source_span=details.get("source_span"),
        )


class AgentPlaybook(StoredPlaybook):
    """What many users taught. It reaches prompts once a person has approved it."""

    agent_playbook_id: int = 0
    playbook_status: PlaybookStatus = PlaybookStatus.PENDING
    playbook_metadata: str = ""
    source_windows: list[SourceWindow] = []
    support: int | None = None
    replaces: list[int] = []

    @staticmethod
    def of(learning: Learning) -> "AgentPlaybook":
        details = learning.details
        return _EMPTY_AGENT_PLAYBOOK._with(
            learning,
            agent_playbook_id=learning.id,
            playbook_status=learning.review,
            playbook_metadata=details.get("playbook_metadata", ""),
            source_windows=[SourceWindow.model_construct(**window) for window in details.get("source_windows", [])],
            support=details.get("support"),
            replaces=details.get("replaces", []),
        )


_EMPTY_USER_PLAYBOOK, _EMPTY_AGENT_PLAYBOOK = UserPlaybook.model_construct(), AgentPlaybook.model_construct()


class _PlaybookSelection(LearningSelection):
    limit: Annotated[int, Field(gt=0)] | None = 100
    playbook_name: str | None = None
    agent_version: str | None = None
    request_id: str | None = None


class GetUserPlaybooksRequest(_PlaybookSelection):
    """Selects user playbooks. All conditions apply."""

    user_playbook_id: RowId | None = None
    user_id: str | None = None


class GetUserPlaybooksResponse(PageResponse):
    """A page of user playbooks."""

    user_playbooks: list[UserPlaybook] = []


class GetAgentPlaybooksRequest(_PlaybookSelection):
    """Selects agent playbooks. All conditions apply."""

    agent_playbook_id: RowId | None = None
    playbook_status_filter: PlaybookStatus | list[PlaybookStatus] | None = None
    session_id: str | None = None


class GetAgentPlaybooksResponse(PageResponse):
    """A page of agent playbooks."""

    agent_playbooks: list[AgentPlaybook] = []


class AddUserPlaybookRequest(RequestModel):
    """User playbooks to add."""

    user_playbooks: Annotated[list[NewUserPlaybook], Field(min_length=1, max_length=MOST_ADDED)]


class AddAgentPlaybookRequest(RequestModel):
    """Agent playbooks to add."""

    agent_playbooks: Annotated[list[NewAgentPlaybook], Field(min_length=1, max_length=MOST_ADDED)]


class _PlaybookChange(RequestModel):
    playbook_name: PlaybookName | None = None
    content: Content | None = None
    trigger: Text | None = None
    rationale: Text | None = None
    scope: WireScope | None = None


class ReviewerRequest(RequestModel):
    """A request of a reviewer, with the reason."""

    reviewer: Annotated[str, StringConstraints(max_length=255)] = ""
    reason: Text = ""


class UpdateUserPlaybookRequest(_PlaybookChange):
    """Names a user playbook, and its new values."""

    user_playbook_id: RowId


class UpdateAgentPlaybookRequest(_PlaybookChange, ReviewerRequest):
    """Names an agent playbook, its new values, and the reviewer."""

    agent_playbook_id: RowId
    playbook_status: PlaybookStatus | None = None


class UpdatePlaybookStatusRequest(ReviewerRequest):
    """The decision of a person about an agent playbook."""

    agent_playbook_id: RowId
    playbook_status: PlaybookStatus


class DeleteUserPlaybookRequest(RequestModel):
    """Names a user playbook."""

    user_playbook_id: RowId


class DeleteUserPlaybooksByIdsRequest(RequestModel):
    """Names user playbooks."""

    user_playbook_ids: Annotated[list[RowId], Field(min_length=1, max_length=10_000)]


class DeleteAgentPlaybookRequest(RequestModel):
    """Names an agent playbook."""

    agent_playbook_id: RowId


class DeleteAgentPlaybooksByIdsRequest(RequestModel):
    """Names agent playbooks."""

    agent_playbook_ids: Annotated[list[RowId], Field(min_length=1, max_length=10_000)]
