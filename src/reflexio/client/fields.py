# Generated from the request models by scripts/make_sync_client.py. Change those and run `make format`.
"""The keywords of the client's methods. Those of `XRequest` are `XFields`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict

from reflexio.models.interaction import GetInteractionsRequest
from reflexio.models.learning import PlaybookStatus, ProfileTimeToLive, Scope, Status
from reflexio.models.profile import GetUserProfilesRequest
from reflexio.models.search import (
    SearchAgentPlaybooksRequest,
    SearchInteractionsRequest,
    SearchMode,
    SearchUserPlaybooksRequest,
    SearchUserProfilesRequest,
    UnifiedSearchRequest,
)


class GetInteractionsFields(TypedDict, total=False):
    top_k: int | None
    start_time: datetime | None
    end_time: datetime | None
    cursor: str | None
    request: GetInteractionsRequest | dict[str, Any] | None


class GetRequestsFields(TypedDict, total=False):
    user_id: str | None
    request_id: str | None
    session_id: str | None
    source: str | None
    top_k: int | None
    offset: int | None
    start_time: datetime | None
    end_time: datetime | None
    cursor: str | None


class GetUserProfilesFields(TypedDict, total=False):
    profile_id: str | None
    top_k: int | None
    source: str | None
    profile_time_to_live: ProfileTimeToLive | str | None
    start_time: datetime | None
    end_time: datetime | None
    cursor: str | None
    query: str | None
    status_filter: Sequence[Status | str | None] | None
    tags: Sequence[str] | None
    scope: Scope | str | None
    request: GetUserProfilesRequest | dict[str, Any] | None


class GetAllProfilesFields(TypedDict, total=False):
    user_id: str | None
    profile_id: str | None
    query: str | None
    source: str | None
    profile_time_to_live: ProfileTimeToLive | str | None
    status_filter: Status | str | None
    tags: Sequence[str] | None
    scope: Scope | str | None
    date_field: str | None
    include_tombstones: bool
    start_time: datetime | None
    end_time: datetime | None
    cursor: str | None


class GetUserPlaybooksFields(TypedDict, total=False):
    user_playbook_id: int | None
    user_id: str | None
    start_time: datetime | None
    end_time: datetime | None
    cursor: str | None
    query: str | None
    status_filter: Sequence[Status | str | None] | None
    tags: Sequence[str] | None
    scope: Scope | str | None
    limit: int | None
    playbook_name: str | None
    agent_version: str | None
    request_id: str | None


class GetAgentPlaybooksFields(TypedDict, total=False):
    agent_playbook_id: int | None
    playbook_status_filter: PlaybookStatus | str | Sequence[PlaybookStatus | str] | None
    start_time: datetime | None
    end_time: datetime | None
    cursor: str | None
    query: str | None
    status_filter: Sequence[Status | str | None] | None
    tags: Sequence[str] | None
    scope: Scope | str | None
    limit: int | None
    playbook_name: str | None
    agent_version: str | None


class UpdateUserProfileFields(TypedDict, total=False):
    content: str | None
    custom_features: dict[str, Any] | None
    scope: Scope | str | None


class UpdateUserPlaybookFields(TypedDict, total=False):
    playbook_name: str | None
    content: str | None
    trigger: str | None
    rationale: str | None
    scope: Scope | str | None


class UpdateAgentPlaybookFields(TypedDict, total=False):
    playbook_status: PlaybookStatus | str | None
    reviewer: str | None
    reason: str | None
    playbook_name: str | None
    content: str | None
    trigger: str | None
    rationale: str | None
    scope: Scope | str | None


class UpdatePlaybookStatusFields(TypedDict, total=False):
    reviewer: str | None
    reason: str | None


class RecordOutcomeFields(TypedDict, total=False):
    user_playbook_ids: Sequence[int] | None
    agent_playbook_ids: Sequence[int] | None


class GetReviewQueueFields(TypedDict, total=False):
    limit: int | None
    agent_playbook_id: int | None
    playbook_name: str | None
    agent_version: str | None
    scope: Scope | str | None
    cursor: str | None


class ReviewAgentPlaybooksFields(TypedDict, total=False):
    reviewer: str | None
    reason: str | None


class UndoReviewFields(TypedDict, total=False):
    reviewer: str | None
    reason: str | None


class UnifiedSearchFields(TypedDict, total=False):
    top_k: int | None
    user_id: str | None
    entity_types: Sequence[str] | None
    agent_playbook_status_filter: Sequence[PlaybookStatus | str] | None
    session_id: str | None
    threshold: float | None
    search_mode: SearchMode | str | None
    explain: bool
    cursor: str | None
    source: str | None
    tags: Sequence[str] | None
    scope: Scope | str | None
    agent_version: str | None
    playbook_name: str | None
    request: UnifiedSearchRequest | dict[str, Any] | None


class ContextFields(TypedDict, total=False):
    user_id: str | None
    agent_version: str | None
    max_tokens: int | None
    include_pending: bool
    include_always: bool | None
    include_relevant: bool | None
    always_share: float | None


class SearchUserProfilesFields(TypedDict, total=False):
    generated_from_request_id: str | None
    start_time: datetime | None
    end_time: datetime | None
    top_k: int | None
    threshold: float | None
    search_mode: SearchMode | str | None
    explain: bool
    cursor: str | None
    source: str | None
    tags: Sequence[str] | None
    scope: Scope | str | None
    request: SearchUserProfilesRequest | dict[str, Any] | None


class SearchUserPlaybooksFields(TypedDict, total=False):
    user_id: str | None
    status_filter: Sequence[Status | str | None] | None
    start_time: datetime | None
    end_time: datetime | None
    top_k: int | None
    threshold: float | None
    search_mode: SearchMode | str | None
    explain: bool
    cursor: str | None
    source: str | None
    tags: Sequence[str] | None
    scope: Scope | str | None
    agent_version: str | None
    playbook_name: str | None
    request: SearchUserPlaybooksRequest | dict[str, Any] | None


class SearchAgentPlaybooksFields(TypedDict, total=False):
    status_filter: Sequence[Status | str | None] | None
    playbook_status_filter: PlaybookStatus | str | Sequence[PlaybookStatus | str] | None
    start_time: datetime | None
    end_time: datetime | None
    top_k: int | None
    threshold: float | None
    search_mode: SearchMode | str | None
    explain: bool
    cursor: str | None
    source: str | None
    tags: Sequence[str] | None
    scope: Scope | str | None
    agent_version: str | None
    playbook_name: str | None
    request: SearchAgentPlaybooksRequest | dict[str, Any] | None


class SearchInteractionsFields(TypedDict, total=False):
    request_id: str | None
    most_recent_k: int | None
    start_time: datetime | None
    end_time: datetime | None
    top_k: int | None
    threshold: float | None
    search_mode: SearchMode | str | None
    explain: bool
    cursor: str | None
    request: SearchInteractionsRequest | dict[str, Any] | None
