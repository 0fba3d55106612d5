"""Playbooks on the wire: of one user and of an agent, with their outcomes."""

import json
import time
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, StringConstraints, WithJsonSchema, field_validator

from reflexio.models.learning import Kind, Learning, PlaybookStatus, Status, WireStatus
from reflexio.models.paging import Cursor
from reflexio.models.profile import MOST_ADDED, Needle, Tags, Text, TurnIds
from reflexio.models.wire import (
    Epoch,
    JsonObject,
    Moment,
    Name,
    PageResponse,
    RequestModel,
    ResponseModel,
    RowId,
    Source,
    Version,
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
AGENT_DETAILS = ("blocking_issue", "playbook_metadata", "source_windows", "support", "replaces")
PlaybookName = Annotated[str, StringConstraints(max_length=255)]
Stored = Annotated[int, Field(ge=0, le=2**63 - 1)]
_ANY_METADATA = {"anyOf": [{"type": "string", "maxLength": 100_000}, {"type": "object"}]}
Metadata = Annotated[Text, WithJsonSchema(_ANY_METADATA)]
Content = Annotated[Text, StringConstraints(min_length=1)]


def _now() -> int:
    return int(time.time())


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


class NewUserPlaybook(RequestModel):
    """A user playbook as a caller adds it."""

    user_playbook_id: Stored = 0
    user_id: Name | None = None
    agent_version: Version = ""
    request_id: Annotated[str, StringConstraints(max_length=255)] = ""
    playbook_name: PlaybookName = "playbook"
    created_at: Epoch = Field(default_factory=_now)
    content: Content
    trigger: Text | None = None
    rationale: Text | None = None
    blocking_issue: BlockingIssue | None = None
    metadata: JsonObject | None = None
    status: WireStatus = Status.CURRENT
    source: Source | None = None
    source_interaction_ids: TurnIds = []
    expanded_terms: str | None = None
    tags: Tags | None = None
    embedding: list[float] = Field(default=[], exclude=True)
    source_span: Text | None = None
    notes: Text | None = None
    reader_angle: Text | None = None
    merged_into: Stored | None = None
    superseded_by: Stored | None = None

    def learning(self, now: int) -> Learning:
        return Learning(
            kind=Kind.USER_PLAYBOOK,
            user_id=self.user_id or "",
            agent_version=self.agent_version,
            name=self.playbook_name,
            source=self.source or "",
            request_id=self.request_id,
            content=self.content,
            trigger=self.trigger or "",
            rationale=self.rationale or "",
            tags=tuple(self.tags or ()),
            status=self.status,
            details=self.model_dump(mode="json", include=set(USER_DETAILS), exclude_none=True),
            created_at=self.created_at,
            modified_at=now,
        )


class UserPlaybook(ResponseModel):
    """What one user taught: when it applies, what to do, and why."""

    user_playbook_id: int = 0
    user_id: str | None = None
    agent_version: str = ""
    request_id: str = ""
    playbook_name: str = ""
    created_at: int = 0
    content: str = ""
    trigger: str | None = None
    rationale: str | None = None
    blocking_issue: BlockingIssue | None = None
    metadata: dict[str, Any] = {}
    status: WireStatus = Status.CURRENT
    source: str | None = None
    source_interaction_ids: list[int] = []
    source_span: str | None = None
    tags: list[str] = []
    outcomes: Outcomes | None = None

    @classmethod
    def of(cls, learning: Learning) -> "UserPlaybook":
        details = learning.details
        return cls.model_construct(
            user_playbook_id=learning.id,
            user_id=learning.user_id or None,
            agent_version=learning.agent_version,
            request_id=learning.request_id,
            playbook_name=learning.name,
            created_at=learning.created_at,
            content=learning.content,
            trigger=learning.trigger or None,
            rationale=learning.rationale or None,
            blocking_issue=_issue(details.get("blocking_issue")),
            metadata=details.get("metadata", {}),
            status=learning.status,
            source=learning.source or None,
            source_interaction_ids=details.get("source_interaction_ids", []),
            source_span=details.get("source_span"),
            tags=list(learning.tags),
            outcomes=_outcomes(details.get("outcomes")),
        )


class NewAgentPlaybook(RequestModel):
    """An agent playbook as a caller adds it."""

    agent_playbook_id: Stored = 0
    playbook_name: PlaybookName = "playbook"
    agent_version: Version = ""
    created_at: Epoch = Field(default_factory=_now)
    content: Content
    trigger: Text | None = None
    rationale: Text | None = None
    blocking_issue: BlockingIssue | None = None
    playbook_status: PlaybookStatus = PlaybookStatus.PENDING
    playbook_metadata: Metadata = ""
    source: Source | None = None
    source_windows: Annotated[list[SourceWindow], Field(max_length=1000)] = []
    expanded_terms: str | None = None
    tags: Tags | None = None
    embedding: list[float] = Field(default=[], exclude=True)
    status: WireStatus = Status.CURRENT
    merged_into: Stored | None = None
    superseded_by: Stored | None = None

    @field_validator("playbook_metadata", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return json.dumps(value) if isinstance(value, dict) else value

    def learning(self, now: int) -> Learning:
        return Learning(
            kind=Kind.AGENT_PLAYBOOK,
            agent_version=self.agent_version,
            name=self.playbook_name,
            source=self.source or "",
            content=self.content,
            trigger=self.trigger or "",
            rationale=self.rationale or "",
            tags=tuple(self.tags or ()),
            status=self.status,
            review=self.playbook_status,
            details=self.model_dump(
                mode="json", include={"blocking_issue", "playbook_metadata", "source_windows"}, exclude_none=True
            ),
            created_at=self.created_at,
            modified_at=now,
        )


class AgentPlaybook(ResponseModel):
    """What many users taught. It reaches prompts once a person has approved it."""

    agent_playbook_id: int = 0
    playbook_name: str = ""
    agent_version: str = ""
    created_at: int = 0
    content: str = ""
    trigger: str | None = None
    rationale: str | None = None
    blocking_issue: BlockingIssue | None = None
    playbook_status: PlaybookStatus = PlaybookStatus.PENDING
    playbook_metadata: str = ""
    source_windows: list[SourceWindow] = []
    support: int | None = None
    replaces: list[int] = []
    source: str | None = None
    status: WireStatus = Status.CURRENT
    tags: list[str] = []
    outcomes: Outcomes | None = None

    @classmethod
    def of(cls, learning: Learning) -> "AgentPlaybook":
        details = learning.details
        return cls.model_construct(
            agent_playbook_id=learning.id,
            playbook_name=learning.name,
            agent_version=learning.agent_version,
            created_at=learning.created_at,
            content=learning.content,
            trigger=learning.trigger or None,
            rationale=learning.rationale or None,
            blocking_issue=_issue(details.get("blocking_issue")),
            playbook_status=learning.review,
            playbook_metadata=details.get("playbook_metadata", ""),
            source_windows=[SourceWindow.model_construct(**each) for each in details.get("source_windows", [])],
            support=details.get("support"),
            replaces=details.get("replaces", []),
            source=learning.source or None,
            status=learning.status,
            tags=list(learning.tags),
            outcomes=_outcomes(details.get("outcomes")),
        )


def _outcomes(stored: dict[str, Any] | None) -> Outcomes | None:
    return Outcomes.model_construct(**stored) if stored else None


def _issue(stored: dict[str, Any] | None) -> BlockingIssue | None:
    return BlockingIssue.model_validate(stored) if stored else None


class _PlaybookQuestion(RequestModel):
    limit: Annotated[int, Field(gt=0)] | None = 100
    query: Needle | None = None
    playbook_name: str | None = None
    agent_version: str | None = None
    start_time: Moment | None = None
    end_time: Moment | None = None
    status_filter: list[WireStatus] | None = None
    tags: list[str] | None = None
    request_id: str | None = None
    cursor: Cursor | None = None


class GetUserPlaybooksRequest(_PlaybookQuestion):
    """Selects user playbooks. All conditions apply."""

    user_playbook_id: RowId | None = None
    user_id: str | None = None


class GetUserPlaybooksResponse(PageResponse):
    """A page of user playbooks."""

    user_playbooks: list[UserPlaybook] = []


class GetAgentPlaybooksRequest(_PlaybookQuestion):
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


class UpdateUserPlaybookRequest(RequestModel):
    """Names a user playbook, and its new values."""

    user_playbook_id: RowId
    playbook_name: PlaybookName | None = None
    content: Content | None = None
    trigger: Text | None = None
    rationale: Text | None = None


class UpdateAgentPlaybookRequest(RequestModel):
    """Names an agent playbook, its new values, and the reviewer."""

    agent_playbook_id: RowId
    playbook_name: PlaybookName | None = None
    content: Content | None = None
    trigger: Text | None = None
    rationale: Text | None = None
    playbook_status: PlaybookStatus | None = None
    reviewer: Annotated[str, StringConstraints(max_length=255)] = ""
    reason: Text = ""


class UpdatePlaybookStatusRequest(RequestModel):
    """The decision of a person about an agent playbook."""

    agent_playbook_id: RowId
    playbook_status: PlaybookStatus
    reviewer: Annotated[str, StringConstraints(max_length=255)] = ""
    reason: Text = ""


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
