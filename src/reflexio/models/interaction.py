"""Interactions on the wire: turns of conversations, and the requests that published them."""

import json
from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from secrets import token_hex
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from reflexio.models.addresses import check_url
from reflexio.models.paging import PageRequest
from reflexio.models.wire import (
    Epoch,
    JsonObject,
    MessageResponse,
    Name,
    NonEmpty,
    PageResponse,
    RequestModel,
    ResponseModel,
    RowId,
    Source,
    SuccessResponse,
    Trimmed,
    UserRequest,
    Version,
    epoch_now,
)

MOST_INTERACTIONS = 1000


class UserActionType(StrEnum):
    """What the user did besides writing."""

    CLICK = "click"
    SCROLL = "scroll"
    TYPE = "type"
    NONE = "none"


class ToolUsed(RequestModel):
    """A tool call made during a turn, with its arguments and result as the agent saw them."""

    tool_name: NonEmpty
    tool_data: JsonObject = {}
    status: Annotated[str, StringConstraints(max_length=1000)] = ""


ID_NAMES = ("learning_id", "real_id", "id")
ROW_KINDS = {"profile_id": "profile", "user_playbook_id": "user_playbook", "agent_playbook_id": "agent_playbook"}


def _learning_id(*, min_length: int = 0) -> Any:
    """An id as text. The rows of playbooks have numbers, which are accepted as they are."""
    text = {"type": "string", "maxLength": 1000} | ({"minLength": min_length} if min_length else {})
    return WithJsonSchema({"anyOf": [text, {"type": "integer"}]})


class _LearningReference(RequestModel):
    """Names a learning: by kind and id, as an item of a context, or as a row of a list or a search."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        given = value.model_dump() if isinstance(value, BaseModel) and not isinstance(value, cls) else value
        name = next((name for name in (*ID_NAMES, *ROW_KINDS) if isinstance(given, Mapping) and name in given), None)
        if name is None:
            return given
        own = next(name for name in ID_NAMES if name in cls.model_fields)
        if name == own:
            fields = {key: part for key, part in given.items() if key == own or key not in ("layer", *ID_NAMES)}
        else:
            fields = {key: part for key, part in given.items() if key in cls.model_fields}
        number = given[name]
        fields[own] = str(number) if type(number) is int else number
        return fields if "kind" in fields or name not in ROW_KINDS else {**fields, "kind": ROW_KINDS[name]}


class Citation(_LearningReference):
    """A learning that a turn gives as its reason."""

    kind: Literal["playbook", "profile", "user_playbook", "agent_playbook"]
    real_id: Annotated[str, StringConstraints(max_length=1000), _learning_id()]
    tag: Annotated[str, StringConstraints(max_length=1000)] = ""
    title: Annotated[str, StringConstraints(max_length=10_000)] = ""


class RetrievedLearning(_LearningReference):
    """A learning that was in the prompt of a turn."""

    kind: Literal["profile", "user_playbook", "agent_playbook"]
    learning_id: Annotated[str, StringConstraints(min_length=1, max_length=1000), _learning_id(min_length=1)]
    exposure_receipt: Annotated[str, StringConstraints(max_length=8192)] | None = None
    exposure_receipt_digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None


def _image_url(url: str) -> str:
    if not url:
        return url
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https", "data"}:
        raise ValueError("must be an http, https or data URL")
    return url if parts.scheme == "data" else check_url(url)


Body = Annotated[str, StringConstraints(max_length=1_000_000)]


class InteractionData(RequestModel):
    """One turn as the caller publishes it. Empty turns are left out and counted in `warnings`."""

    created_at: Epoch = Field(default_factory=epoch_now)
    role: Annotated[str, StringConstraints(max_length=1000)] = "User"
    content: Body = ""
    shadow_content: Body = ""
    expert_content: Body = ""
    user_action: UserActionType = UserActionType.NONE
    user_action_description: Annotated[str, StringConstraints(max_length=10_000)] = Field("", validate_default=True)
    interacted_image_url: Annotated[str, StringConstraints(max_length=2048), AfterValidator(_image_url)] = ""
    image_encoding: Annotated[str, StringConstraints(max_length=15_000_000)] = ""
    tools_used: list[ToolUsed] = Field(default_factory=list, max_length=1000)
    citations: list[Citation] = Field(default_factory=list, max_length=1000)
    retrieved_learnings: list[RetrievedLearning] = Field(default_factory=list, max_length=1000)

    @field_validator("user_action_description")
    @classmethod
    def _described(cls, description: str, info: ValidationInfo) -> str:
        if info.data.get("user_action", UserActionType.NONE) is not UserActionType.NONE and not description.strip():
            raise ValueError("user_action needs a user_action_description")
        return description

    @field_validator("image_encoding")
    @classmethod
    def _one_image(cls, encoding: str, info: ValidationInfo) -> str:
        if encoding and info.data.get("interacted_image_url"):
            raise ValueError("give interacted_image_url or image_encoding, not both")
        return encoding

    @property
    def is_empty(self) -> bool:
        said = self.content, self.shadow_content, self.expert_content
        shown = self.interacted_image_url, self.image_encoding
        done = self.tools_used, self.citations, self.retrieved_learnings
        return not any((*said, *shown, *done)) and self.user_action is UserActionType.NONE


class PublishRequest(UserRequest):
    """Turns of one user in one session."""

    request_id: Name | None = None
    interaction_data_list: Annotated[list[InteractionData], Field(min_length=1, max_length=MOST_INTERACTIONS)]
    source: Source = ""
    agent_version: Version = ""
    session_id: Name | None = None
    session_finished: bool = False
    skip_aggregation: bool = False
    evaluation_only: bool = False
    force_extraction: bool = False
    override_learning_stall: bool = False
    retrieval_experiment_id: Name | None = None
    retrieval_experiment_arm: Literal["treatment", "holdout"] | None = None

    @field_validator("interaction_data_list")
    @classmethod
    def _something(cls, turns: list[InteractionData]) -> list[InteractionData]:
        if all(turn.is_empty for turn in turns):
            raise ValueError("every interaction is empty: give at least one of them content")
        return turns

    @field_validator("force_extraction")
    @classmethod
    def _one_purpose(cls, force: bool, info: ValidationInfo) -> bool:
        if force and info.data.get("evaluation_only"):
            raise ValueError("evaluation_only excludes force_extraction")
        return force


class PublishResponse(MessageResponse):
    """The result of a publish."""

    warnings: list[str] = Field(default_factory=list)
    request_id: str | None = None
    session_id: str | None = None
    endpoint_url: str | None = None
    storage_type: str | None = None
    storage_label: str | None = None
    profiles_added: int | None = None
    profiles_updated: int | None = None
    playbooks_added: int | None = None
    playbooks_updated: int | None = None
    learning_status: str | None = None
    learning_reason: str | None = None
    redacted: dict[str, int] | None = None


class Interaction(ResponseModel):
    """One stored turn."""

    interaction_id: int = 0
    user_id: str
    request_id: str
    created_at: int
    role: str = "User"
    content: str = ""
    user_action: UserActionType = UserActionType.NONE
    user_action_description: str = ""
    interacted_image_url: str = ""
    shadow_content: str = ""
    expert_content: str = ""
    tools_used: list[ToolUsed] = Field(default_factory=list)
    citations: list[Citation] = Field(default_factory=list)
    retrieved_learnings: list[RetrievedLearning] = Field(default_factory=list)


class Request(ResponseModel):
    """One stored request."""

    request_id: str
    user_id: str
    created_at: int
    source: str = ""
    agent_version: str = ""
    session_id: str
    evaluation_only: bool = False
    session_finished: bool = False
    skip_aggregation: bool = False
    force_extraction: bool = False
    retrieval_experiment_id: str | None = None
    retrieval_experiment_arm: str | None = None
    redacted_count: int = 0


class GetInteractionsRequest(UserRequest, PageRequest):
    """Selects turns of a user."""

    top_k: Annotated[int, Field(gt=0)] | None = 30


class GetInteractionsResponse(PageResponse):
    """A page of turns."""

    interactions: list[Interaction] = []


class GetRequestsRequest(PageRequest):
    """Selects requests."""

    user_id: Trimmed | None = None
    request_id: Trimmed | None = None
    session_id: Trimmed | None = None
    source: Source | None = None
    top_k: Annotated[int, Field(gt=0)] | None = 30
    offset: Annotated[int, Field(ge=0, le=10_000_000)] | None = 0


class RequestData(ResponseModel):
    """A request with its turns, oldest first."""

    request: Request
    interactions: list[Interaction] = []


class Session(ResponseModel):
    """The requests of one session on this page."""

    session_id: str
    requests: list[RequestData] = []


class GetRequestsResponse(PageResponse):
    """A page of requests."""

    sessions: list[Session] = []
    has_more: bool = False


class FinalizeSessionRequest(UserRequest):
    """Names a session that is over."""

    session_id: Name


class FinalizeSessionResponse(MessageResponse):
    """Whether the session exists."""

    accepted: bool = False


class LearningStatusResponse(ResponseModel):
    """How far learning is, and why it is not further."""

    status: Literal["pending", "processing", "done", "failed", "not_tracked"]
    reason: str | None = None


class DeleteInteractionRequest(UserRequest):
    """Names a turn."""

    interaction_id: RowId


class DeleteRequestRequest(RequestModel):
    """Names a request."""

    request_id: Name


class DeleteSessionRequest(RequestModel):
    """Names a session."""

    session_id: Name


class DeleteRequestsByIdsRequest(RequestModel):
    """Selects requests."""

    request_ids: Annotated[list[Name], Field(min_length=1, max_length=10_000)]


class DeleteResponse(MessageResponse):
    """Confirms a deletion."""


class DeleteSessionResponse(MessageResponse):
    """The number of deleted rows."""

    deleted_requests_count: int = 0


class BulkDeleteResponse(MessageResponse):
    """The number of deleted rows."""

    deleted_count: int = 0


class ClearUserDataRequest(UserRequest):
    """Names a user, and whether agent playbooks that too few others support are withdrawn."""

    withdraw_unsupported: bool = False


class ErasureReceipt(ResponseModel):
    """Proof of an erasure: the deleted rows of each table, and a digest of that, the time, the organisation and user.

    It does not name the user. The server keeps the digest alone; the nonce keeps others from guessing who it is about.
    """

    erased_at: int = 0
    counts: dict[str, int] = {}
    nonce: str = ""
    digest: str = ""

    @classmethod
    def issue(cls, org_id: str, user_id: str, now: int, counts: Mapping[str, int]) -> "ErasureReceipt":
        receipt = cls(erased_at=now, counts=dict(counts), nonce=token_hex(16))
        return receipt.model_copy(update={"digest": receipt.digest_for(org_id, user_id)})

    def digest_for(self, org_id: str, user_id: str) -> str:
        parts = [org_id, user_id, self.erased_at, sorted(self.counts.items()), self.nonce]
        return sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()

    def fits(self, org_id: str, user_id: str) -> bool:
        return self.digest == self.digest_for(org_id, user_id)


class ClearUserDataResponse(SuccessResponse):
    """The number of deleted rows of each kind, and a receipt. `deleted_counts` has the four kinds that users see."""

    deleted_counts: dict[str, int] = {}
    withdrawn_agent_playbooks: int = 0
    message: str | None = None
    receipt: ErasureReceipt | None = None
