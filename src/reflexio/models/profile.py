"""Profiles on the wire: facts about one user, each with a time to live."""

import time
from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from reflexio.models.learning import Kind, Learning, ProfileTimeToLive, Scope, Status, WireScope, WireStatus
from reflexio.models.paging import PageRequest
from reflexio.models.wire import (
    NEVER_EXPIRES,
    Epoch,
    JsonObject,
    Name,
    NonEmpty,
    NoticeResponse,
    PageResponse,
    RequestModel,
    ResponseModel,
    Source,
    SuccessResponse,
    Trimmed,
    UserRequest,
)
from reflexio.models.wording import without_hidden

MOST_ADDED = 1000


def _seen(text: str) -> str:
    visible = without_hidden(text)
    if text and not visible:
        raise ValueError("holds only characters that show nothing")
    return visible


Text = Annotated[str, StringConstraints(max_length=100_000), AfterValidator(without_hidden)]
Tag = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=r"^[^|]*$"),
    AfterValidator(_seen),
]
Tags = Annotated[list[Tag], Field(max_length=100)]
Content = Annotated[str, StringConstraints(min_length=1, max_length=100_000), AfterValidator(_seen)]
TurnIds = Annotated[list[Annotated[int, Field(ge=0, le=2**63 - 1)]], Field(max_length=1000)]
Needle = Annotated[str, StringConstraints(max_length=1000)]
DETAILS = ("custom_features", "extractor_names", "source_span", "source_interaction_ids", "notes", "reader_angle")


class NewLearning(RequestModel):
    """What the learnings that a caller adds have in common."""

    content: Content
    source: Source | None = None
    status: WireStatus = Status.CURRENT
    expanded_terms: str | None = None
    tags: Tags | None = None
    scope: WireScope | None = None
    embedding: list[float] = Field(default=[], exclude=True)

    def _learning(self, kind: Kind, **values: Any) -> Learning:
        return Learning(
            kind=kind,
            content=self.content,
            source=self.source or "",
            status=self.status,
            tags=tuple(self.tags or ()),
            scope=self.scope or Scope.WHEN_RELEVANT,
            **values,
        )


class NewUserLearning(NewLearning):
    """What new learnings about one user have in common: the evidence."""

    source_interaction_ids: TurnIds = []
    source_span: Text | None = None
    notes: Text | None = None
    reader_angle: Text | None = None


class NewUserProfile(NewUserLearning, UserRequest):
    """A profile as a caller adds it; only user and content are required."""

    profile_id: Name | None = None
    last_modified_timestamp: Epoch | None = None
    generated_from_request_id: Annotated[str, StringConstraints(max_length=255)] = ""
    profile_time_to_live: ProfileTimeToLive = ProfileTimeToLive.INFINITY
    expiration_timestamp: Epoch | None = None
    custom_features: JsonObject | None = None
    extractor_names: Annotated[list[str], Field(max_length=100)] | None = None
    merged_into: str | None = None
    superseded_by: str | None = None

    def learning(self, now: int) -> Learning:
        seconds = self.profile_time_to_live.seconds
        expires = self.expiration_timestamp
        if expires is None or (expires == NEVER_EXPIRES and seconds):
            expires = now + seconds if seconds else NEVER_EXPIRES
        details = self.model_dump(include=set(DETAILS), exclude_none=True)
        return self._learning(
            Kind.PROFILE,
            key=self.profile_id or str(uuid4()),
            user_id=self.user_id,
            request_id=self.generated_from_request_id,
            details={"profile_time_to_live": self.profile_time_to_live.value, **details},
            created_at=self.last_modified_timestamp or now,
            modified_at=self.last_modified_timestamp or now,
            expires_at=expires,
        )


class UserProfile(ResponseModel):
    """A stored fact about a user."""

    profile_id: str
    user_id: str
    content: str
    last_modified_timestamp: int
    generated_from_request_id: str = ""
    profile_time_to_live: ProfileTimeToLive = ProfileTimeToLive.INFINITY
    expiration_timestamp: int = NEVER_EXPIRES
    custom_features: dict[str, Any] | None = None
    source: str | None = None
    status: WireStatus = Status.CURRENT
    extractor_names: list[str] | None = None
    source_span: str | None = None
    source_interaction_ids: list[int] = []
    tags: list[str] = []
    notes: str | None = None
    scope: Scope = Scope.WHEN_RELEVANT

    @classmethod
    def of(cls, learning: Learning) -> "UserProfile":
        return cls.model_construct(
            profile_id=learning.key,
            user_id=learning.user_id,
            content=learning.content,
            last_modified_timestamp=learning.modified_at,
            generated_from_request_id=learning.request_id,
            profile_time_to_live=ProfileTimeToLive(learning.details.get("profile_time_to_live", "infinity")),
            expiration_timestamp=learning.expires_at,
            source=learning.source or None,
            status=learning.status,
            tags=list(learning.tags),
            scope=learning.scope,
            **{
                name: learning.details[name]
                for name in DETAILS
                if name in learning.details and name in cls.model_fields
            },
        )


class LearningSelection(PageRequest):
    """Conditions for learnings. All of them apply."""

    query: Needle | None = None
    status_filter: list[WireStatus] | None = None
    tags: list[str] | None = None
    scope: WireScope | None = None


class GetUserProfilesRequest(LearningSelection, UserRequest):
    """Selects profiles of a user."""

    profile_id: str | None = None
    top_k: Annotated[int, Field(gt=0)] | None = 30
    source: Source | None = None
    profile_time_to_live: ProfileTimeToLive | None = None


class GetAllProfilesRequest(PageRequest):
    """Selects profiles of one user or of all. All conditions apply."""

    # Built at once: FastAPI reads the fields as query parameters when it declares the route.
    model_config = ConfigDict(defer_build=False)

    limit: Annotated[int, Field(gt=0)] = 100
    user_id: Trimmed | None = None
    profile_id: str | None = None
    query: Needle | None = None
    source: Source | None = None
    profile_time_to_live: ProfileTimeToLive | None = None
    status_filter: WireStatus | None = None
    tags: list[str] | None = None
    scope: WireScope | None = None
    date_field: Literal["last_modified_timestamp", "expiration_timestamp"] = "last_modified_timestamp"
    include_tombstones: bool = False


class GetProfilesResponse(PageResponse):
    """A page of profiles."""

    user_profiles: list[UserProfile] = []

    def alive(self) -> "GetProfilesResponse":
        """The page without profiles that have expired since it was read."""
        now = time.time()
        alive = [each for each in self.user_profiles if each.expiration_timestamp > now]
        return self.model_copy(update={"user_profiles": alive})


class AddUserProfileRequest(RequestModel):
    """Profiles to add."""

    user_profiles: Annotated[list[NewUserProfile], Field(min_length=1, max_length=MOST_ADDED)]


class AddResponse(SuccessResponse):
    """The number of added rows, their ids, and how many wait for their vector."""

    message: str | None = None
    added_count: int = 0
    ids: list[str] = []
    unembedded_count: int = 0
    redacted: dict[str, int] | None = None


class UpdateUserProfileRequest(UserRequest):
    """Names a profile, and its new values."""

    profile_id: Name
    content: Content | None = None
    custom_features: JsonObject | None = None
    scope: WireScope | None = None


class UpdateResponse(NoticeResponse):
    """Confirms a change."""


class DeleteUserProfileRequest(UserRequest):
    """Names a profile, or a text to find in profiles."""

    profile_id: str = ""
    search_query: Needle = ""


class DeleteProfilesByIdsRequest(RequestModel):
    """Names profiles."""

    profile_ids: Annotated[list[NonEmpty], Field(min_length=1, max_length=10_000)]


class ProfileStatisticsResponse(NoticeResponse):
    """The number of profiles by status."""

    current_count: int = 0
    pending_count: int = 0
    archived_count: int = 0
    expiring_soon_count: int = 0
