"""How each method of the client is answered: the HTTP call, its request and response models, and the cache.

The parameters of the methods are in `aio`; sending is in `aio/connection.py`.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from reflexio.client.cache import AGENT_PLAYBOOKS, LEARNINGS, PROFILES
from reflexio.models.config import Config, SetConfigResponse, StorageStatsResponse, WhoamiResponse
from reflexio.models.evaluation import (
    GetAgentSuccessEvaluationResultsRequest,
    GetAgentSuccessEvaluationResultsResponse,
)
from reflexio.models.interaction import (
    BulkDeleteResponse,
    ClearUserDataRequest,
    ClearUserDataResponse,
    DeleteInteractionRequest,
    DeleteRequestRequest,
    DeleteRequestsByIdsRequest,
    DeleteResponse,
    DeleteSessionRequest,
    DeleteSessionResponse,
    FinalizeSessionRequest,
    FinalizeSessionResponse,
    GetInteractionsRequest,
    GetInteractionsResponse,
    GetRequestsRequest,
    GetRequestsResponse,
    LearningStatusResponse,
    PublishRequest,
    PublishResponse,
)
from reflexio.models.operation import (
    CancelOperationRequest,
    CancelOperationResponse,
    DowngradeProfilesRequest,
    DowngradeProfilesResponse,
    DowngradeUserPlaybooksRequest,
    DowngradeUserPlaybooksResponse,
    GetOperationStatusResponse,
    ManualPlaybookGenerationRequest,
    ManualPlaybookGenerationResponse,
    ManualProfileGenerationRequest,
    ManualProfileGenerationResponse,
    RerunPlaybookGenerationRequest,
    RerunPlaybookGenerationResponse,
    RerunProfileGenerationRequest,
    RerunProfileGenerationResponse,
    UpgradeProfilesRequest,
    UpgradeProfilesResponse,
    UpgradeUserPlaybooksRequest,
    UpgradeUserPlaybooksResponse,
)
from reflexio.models.optimisation import (
    CancelPlaybookOptimizationRequest,
    CancelPlaybookOptimizationResponse,
    GetPlaybookOptimizationResponse,
    GetPlaybookOptimizationsResponse,
    RunPlaybookOptimizationRequest,
    RunPlaybookOptimizationResponse,
)
from reflexio.models.playbook import (
    AddAgentPlaybookRequest,
    AddUserPlaybookRequest,
    DeleteAgentPlaybookRequest,
    DeleteAgentPlaybooksByIdsRequest,
    DeleteUserPlaybookRequest,
    DeleteUserPlaybooksByIdsRequest,
    GetAgentPlaybooksRequest,
    GetAgentPlaybooksResponse,
    GetUserPlaybooksRequest,
    GetUserPlaybooksResponse,
    RecordOutcomeRequest,
    UpdateAgentPlaybookRequest,
    UpdatePlaybookStatusRequest,
    UpdateUserPlaybookRequest,
)
from reflexio.models.profile import (
    AddResponse,
    AddUserProfileRequest,
    DeleteProfilesByIdsRequest,
    DeleteUserProfileRequest,
    GetAllProfilesRequest,
    GetProfilesResponse,
    GetUserProfilesRequest,
    UpdateResponse,
    UpdateUserProfileRequest,
)
from reflexio.models.review import (
    GetLearningProvenanceRequest,
    GetReviewQueueRequest,
    GetReviewQueueResponse,
    LearningProvenanceResponse,
    ReviewAgentPlaybooksRequest,
    ReviewResponse,
    RunPlaybookAggregationRequest,
    RunPlaybookAggregationResponse,
    UndoReviewRequest,
)
from reflexio.models.search import (
    ContextRequest,
    ContextResponse,
    SearchAgentPlaybooksRequest,
    SearchAgentPlaybooksResponse,
    SearchInteractionsRequest,
    SearchInteractionsResponse,
    SearchProfilesResponse,
    SearchUserPlaybooksRequest,
    SearchUserPlaybooksResponse,
    SearchUserProfilesRequest,
    UnifiedSearchRequest,
    UnifiedSearchResponse,
)
from reflexio.models.transfer import ExportRowsRequest, ExportRowsResponse, ImportRowsRequest, ImportRowsResponse
from reflexio.models.usage import MarkNotifiedResponse, StallStateResponse, UsageResponse

A = TypeVar("A", bound=BaseModel)

LEARNING_SECONDS = 600.0
"""For calls that the server answers when it has learned."""


class NoRequest(BaseModel):
    """Stands where a call has no body; its arguments go into the query of the URL."""


@dataclass(frozen=True)
class ClientRoute(Generic[A]):
    """One kind of call."""

    method: str
    path: str
    response: type[A]
    request: type[BaseModel] = NoRequest
    repeatable: bool = True
    """Whether a call that may have arrived can be sent once more."""
    fails_open: bool = False
    """Whether an agent goes on with an empty response when memory cannot be reached."""
    cached_as: str = ""
    """The topic of the cache that keeps its responses."""
    changes: tuple[str, ...] = ()
    """The topics of the cache that it changes."""
    changes_later: bool = False
    """Whether the server goes on changing them after it has answered."""
    seconds: float | None = None
    """Its own timeout, where the client's is too short."""


def _get(path: str, response: type[A], *, fails_open: bool = False) -> ClientRoute[A]:
    return ClientRoute("GET", path, response, fails_open=fails_open)


def _read(path: str, request: type[BaseModel], response: type[A], *, cached_as: str = "") -> ClientRoute[A]:
    return ClientRoute("POST", path, response, request, fails_open=True, cached_as=cached_as)


def _change(
    path: str, request: type[BaseModel], response: type[A], *changes: str, seconds: float | None = None
) -> ClientRoute[A]:
    return ClientRoute("POST", path, response, request, repeatable=False, changes=changes, seconds=seconds)


def _teach(path: str, request: type[BaseModel], response: type[A], *, seconds: float | None = None) -> ClientRoute[A]:
    return ClientRoute(
        "POST", path, response, request, fails_open=True, changes=LEARNINGS, changes_later=True, seconds=seconds
    )


def _update(path: str, request: type[BaseModel], *changes: str) -> ClientRoute[UpdateResponse]:
    return ClientRoute("PUT", path, UpdateResponse, request, changes=changes)


def _delete(path: str, request: type[BaseModel], response: type[A], *changes: str) -> ClientRoute[A]:
    return ClientRoute("DELETE", path, response, request, repeatable=False, changes=changes)


# Interactions
PUBLISH = _teach("/api/publish_interaction", PublishRequest, PublishResponse)
PUBLISH_AND_LEARN = _teach(
    "/api/publish_interaction?wait_for_response=true", PublishRequest, PublishResponse, seconds=LEARNING_SECONDS
)
FINALIZE_SESSION = _teach("/api/finalize_session", FinalizeSessionRequest, FinalizeSessionResponse)
CLEAR_USER_DATA = ClientRoute(
    "POST", "/api/clear_user_data", ClearUserDataResponse, ClearUserDataRequest, changes=LEARNINGS
)
LEARNING_STATUS = _get("/api/learning_status", LearningStatusResponse)
GET_INTERACTIONS = _read("/api/get_interactions", GetInteractionsRequest, GetInteractionsResponse)
GET_ALL_INTERACTIONS = _get("/api/get_all_interactions", GetInteractionsResponse, fails_open=True)
GET_REQUESTS = _read("/api/get_requests", GetRequestsRequest, GetRequestsResponse)
DELETE_INTERACTION = _delete("/api/delete_interaction", DeleteInteractionRequest, DeleteResponse)
DELETE_REQUEST = _delete("/api/delete_request", DeleteRequestRequest, DeleteResponse)
DELETE_SESSION = _delete("/api/delete_session", DeleteSessionRequest, DeleteSessionResponse)
DELETE_REQUESTS = _delete("/api/delete_requests_by_ids", DeleteRequestsByIdsRequest, BulkDeleteResponse)
DELETE_ALL_INTERACTIONS = _delete("/api/delete_all_interactions", NoRequest, BulkDeleteResponse, *LEARNINGS)

# Profiles
GENERATE_PROFILES = _change(
    "/api/manual_profile_generation",
    ManualProfileGenerationRequest,
    ManualProfileGenerationResponse,
    PROFILES,
    seconds=LEARNING_SECONDS,
)
ADD_PROFILES = _change("/api/add_user_profile", AddUserProfileRequest, AddResponse, PROFILES)
GET_PROFILES = _read("/api/get_profiles", GetUserProfilesRequest, GetProfilesResponse, cached_as=PROFILES)
GET_ALL_PROFILES = ClientRoute(
    "GET", "/api/get_all_profiles", GetProfilesResponse, GetAllProfilesRequest, fails_open=True
)
UPDATE_PROFILE = _update("/api/update_user_profile", UpdateUserProfileRequest, PROFILES)
DELETE_PROFILE = _delete("/api/delete_profile", DeleteUserProfileRequest, DeleteResponse, PROFILES)
DELETE_PROFILES = _delete("/api/delete_profiles_by_ids", DeleteProfilesByIdsRequest, BulkDeleteResponse, PROFILES)
DELETE_ALL_PROFILES = _delete("/api/delete_all_profiles", NoRequest, BulkDeleteResponse, PROFILES)
UPGRADE_PROFILES = _change("/api/upgrade_all_profiles", UpgradeProfilesRequest, UpgradeProfilesResponse, PROFILES)
DOWNGRADE_PROFILES = _change(
    "/api/downgrade_all_profiles", DowngradeProfilesRequest, DowngradeProfilesResponse, PROFILES
)
RERUN_PROFILES = _change(
    "/api/rerun_profile_generation", RerunProfileGenerationRequest, RerunProfileGenerationResponse, PROFILES
)

# User playbooks
GENERATE_PLAYBOOKS = _change(
    "/api/manual_playbook_generation",
    ManualPlaybookGenerationRequest,
    ManualPlaybookGenerationResponse,
    seconds=LEARNING_SECONDS,
)
ADD_USER_PLAYBOOKS = _change("/api/add_user_playbook", AddUserPlaybookRequest, AddResponse)
GET_USER_PLAYBOOKS = _read("/api/get_user_playbooks", GetUserPlaybooksRequest, GetUserPlaybooksResponse)
UPDATE_USER_PLAYBOOK = _update("/api/update_user_playbook", UpdateUserPlaybookRequest)
DELETE_USER_PLAYBOOK = _delete("/api/delete_user_playbook", DeleteUserPlaybookRequest, DeleteResponse)
DELETE_USER_PLAYBOOKS = _delete(
    "/api/delete_user_playbooks_by_ids", DeleteUserPlaybooksByIdsRequest, BulkDeleteResponse
)
DELETE_ALL_USER_PLAYBOOKS = _delete("/api/delete_all_user_playbooks", NoRequest, BulkDeleteResponse)
UPGRADE_PLAYBOOKS = _change(
    "/api/upgrade_all_user_playbooks", UpgradeUserPlaybooksRequest, UpgradeUserPlaybooksResponse
)
DOWNGRADE_PLAYBOOKS = _change(
    "/api/downgrade_all_user_playbooks", DowngradeUserPlaybooksRequest, DowngradeUserPlaybooksResponse
)
RERUN_PLAYBOOKS = _change(
    "/api/rerun_playbook_generation", RerunPlaybookGenerationRequest, RerunPlaybookGenerationResponse
)

# Agent playbooks
ADD_AGENT_PLAYBOOKS = _change("/api/add_agent_playbook", AddAgentPlaybookRequest, AddResponse, AGENT_PLAYBOOKS)
GET_AGENT_PLAYBOOKS = _read(
    "/api/get_agent_playbooks", GetAgentPlaybooksRequest, GetAgentPlaybooksResponse, cached_as=AGENT_PLAYBOOKS
)
UPDATE_AGENT_PLAYBOOK = _update("/api/update_agent_playbook", UpdateAgentPlaybookRequest, AGENT_PLAYBOOKS)
UPDATE_STATUS = _update("/api/update_agent_playbook_status", UpdatePlaybookStatusRequest, AGENT_PLAYBOOKS)
DELETE_AGENT_PLAYBOOK = _delete(
    "/api/delete_agent_playbook", DeleteAgentPlaybookRequest, DeleteResponse, AGENT_PLAYBOOKS
)
DELETE_AGENT_PLAYBOOKS = _delete(
    "/api/delete_agent_playbooks_by_ids", DeleteAgentPlaybooksByIdsRequest, BulkDeleteResponse, AGENT_PLAYBOOKS
)
DELETE_ALL_AGENT_PLAYBOOKS = _delete("/api/delete_all_agent_playbooks", NoRequest, BulkDeleteResponse, AGENT_PLAYBOOKS)
DELETE_ALL_PLAYBOOKS = _delete("/api/delete_all_playbooks", NoRequest, BulkDeleteResponse, AGENT_PLAYBOOKS)
RUN_AGGREGATION = _change(
    "/api/run_playbook_aggregation?wait_for_response=false",
    RunPlaybookAggregationRequest,
    RunPlaybookAggregationResponse,
    AGENT_PLAYBOOKS,
)

# Provenance, outcomes and review
GET_PROVENANCE = ClientRoute(
    "POST", "/api/get_learning_provenance", LearningProvenanceResponse, GetLearningProvenanceRequest
)
RECORD_OUTCOME = _change("/api/record_outcome", RecordOutcomeRequest, UpdateResponse, AGENT_PLAYBOOKS)
GET_REVIEW_QUEUE = ClientRoute("POST", "/api/get_review_queue", GetReviewQueueResponse, GetReviewQueueRequest)
REVIEW = _change("/api/review_agent_playbooks", ReviewAgentPlaybooksRequest, ReviewResponse, AGENT_PLAYBOOKS)
UNDO_REVIEW = _change("/api/undo_review", UndoReviewRequest, ReviewResponse, AGENT_PLAYBOOKS)

# Search and context
SEARCH = _read("/api/search", UnifiedSearchRequest, UnifiedSearchResponse)
GET_CONTEXT = _read("/api/context", ContextRequest, ContextResponse)
SEARCH_PROFILES = _read("/api/search_profiles", SearchUserProfilesRequest, SearchProfilesResponse)
SEARCH_USER_PLAYBOOKS = _read("/api/search_user_playbooks", SearchUserPlaybooksRequest, SearchUserPlaybooksResponse)
SEARCH_AGENT_PLAYBOOKS = _read("/api/search_agent_playbooks", SearchAgentPlaybooksRequest, SearchAgentPlaybooksResponse)
SEARCH_INTERACTIONS = _read("/api/search_interactions", SearchInteractionsRequest, SearchInteractionsResponse)

# Configuration and state
SET_CONFIG = ClientRoute("POST", "/api/set_config", SetConfigResponse)
MARK_STALL_NOTIFIED = ClientRoute("POST", "/stall_state/notified", MarkNotifiedResponse)
GET_CONFIG = _get("/api/get_config", Config)
WHOAMI = _get("/api/whoami", WhoamiResponse)
STORAGE_STATS = _get("/api/storage_stats", StorageStatsResponse)
GET_USAGE = _get("/api/usage", UsageResponse)
GET_STALL_STATE = _get("/stall_state", StallStateResponse)

# Export and import
EXPORT_ROWS = ClientRoute("POST", "/api/export_rows", ExportRowsResponse, ExportRowsRequest)
IMPORT_ROWS = ClientRoute(
    "POST", "/api/import_rows", ImportRowsResponse, ImportRowsRequest, changes=LEARNINGS, seconds=LEARNING_SECONDS
)

# Evaluation
GET_EVALUATIONS = _read(
    "/api/get_agent_success_evaluation_results",
    GetAgentSuccessEvaluationResultsRequest,
    GetAgentSuccessEvaluationResultsResponse,
)

# Operations and optimisation
GET_OPERATION_STATUS = _get("/api/get_operation_status", GetOperationStatusResponse)
CANCEL_OPERATION = ClientRoute("POST", "/api/cancel_operation", CancelOperationResponse, CancelOperationRequest)
RUN_OPTIMISATION = _change(
    "/api/run_playbook_optimization", RunPlaybookOptimizationRequest, RunPlaybookOptimizationResponse
)
GET_OPTIMISATIONS = _get("/api/get_playbook_optimizations", GetPlaybookOptimizationsResponse)
GET_OPTIMISATION = _get("/api/get_playbook_optimization", GetPlaybookOptimizationResponse)
CANCEL_OPTIMISATION = _change(
    "/api/cancel_playbook_optimization", CancelPlaybookOptimizationRequest, CancelPlaybookOptimizationResponse
)
