"""Search on the wire: queries, hits, and the explanation of their ranking."""

import base64
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints

from reflexio.models.interaction import Interaction
from reflexio.models.learning import PlaybookStatus, WireScope, WireStatus
from reflexio.models.playbook import AgentPlaybook, UserPlaybook
from reflexio.models.profile import UserProfile
from reflexio.models.wire import (
    Name,
    NonEmpty,
    NoticeResponse,
    RequestModel,
    ResponseModel,
    RowId,
    Source,
    TimeRangeRequest,
    UserRequest,
)

Query = Annotated[str, StringConstraints(max_length=1_000_000)]
Message = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000_000)]
TopK = Annotated[int, Field(gt=0, le=10_000)]
Threshold = Annotated[float, Field(ge=0.0, le=1.0)]
Ident = Annotated[str, StringConstraints(max_length=255)]


@dataclass(frozen=True)
class HitPosition:
    """A position among the hits of a search: how many were read already."""

    start: int

    def cursor(self) -> str:
        return base64.urlsafe_b64encode(f"hit.{self.start}".encode()).decode().rstrip("=")

    @classmethod
    def read(cls, cursor: str) -> Self:
        with suppress(ValueError):
            kind, start = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii").split(".")
            position = cls(int(start))
            if kind == "hit" and 0 <= position.start < 2**31 and position.cursor() == cursor:
                return position
        raise ValueError("not a cursor of a search; start again without one")


def _known_position(cursor: str) -> str:
    HitPosition.read(cursor)
    return cursor


HitCursor = Annotated[str, StringConstraints(max_length=100), AfterValidator(_known_position)]


class SearchMode(StrEnum):
    """Search by vectors, by words, or by both."""

    VECTOR = "vector"
    FTS = "fts"
    HYBRID = "hybrid"


class Explanation(ResponseModel):
    """Why a hit has its rank. `kind` is `profile`, `user_playbook`, `agent_playbook` or `interaction`."""

    id: str
    kind: str = ""
    score: float
    words_rank: int | None = None
    words_score: float | None = None
    vector_score: float | None = None
    why: str = ""


class _Ranking(RequestModel):
    top_k: TopK | None = 10
    threshold: Threshold | None = None
    search_mode: SearchMode = SearchMode.HYBRID
    explain: bool = False
    cursor: HitCursor | None = None

    @property
    def start(self) -> int:
        """How many hits earlier pages had."""
        return HitPosition.read(self.cursor).start if self.cursor else 0


class _Search(_Ranking, TimeRangeRequest):
    query: Query | None = None


class _LearningSearch(_Ranking):
    source: Source | None = None
    tags: list[str] | None = None
    scope: WireScope | None = None
    enable_reformulation: bool | None = False


class _PlaybookSearch(_LearningSearch):
    agent_version: str | None = None
    playbook_name: str | None = None


class SearchInteractionsRequest(_Search, UserRequest):
    """A search of the turns of a user."""

    request_id: str | None = None
    most_recent_k: Annotated[int, Field(gt=0, le=10_000)] | None = None


class SearchUserProfilesRequest(_Search, _LearningSearch, UserRequest):
    """A search of the profiles of a user."""

    generated_from_request_id: str | None = None
    request_id: str | None = None
    session_id: str | None = None
    custom_feature: str | None = None
    extractor_name: str | None = None


class SearchUserPlaybooksRequest(_Search, _PlaybookSearch):
    """A search of user playbooks."""

    user_id: Ident | None = None
    status_filter: list[WireStatus] | None = None
    request_id: Ident | None = None
    session_id: Ident | None = None


class SearchAgentPlaybooksRequest(_Search, _PlaybookSearch):
    """A search of agent playbooks."""

    user_id: Name | None = None
    status_filter: list[WireStatus] | None = None
    playbook_status_filter: PlaybookStatus | list[PlaybookStatus] | None = None
    request_id: str | None = None
    session_id: str | None = None


class ConversationTurn(RequestModel):
    """A turn before the query."""

    role: NonEmpty
    content: NonEmpty


class UnifiedSearchRequest(_PlaybookSearch):
    """A search of all kinds of learnings at once."""

    query: Message
    top_k: TopK | None = 5
    user_id: Ident | None = None
    entity_types: list[Literal["profiles", "user_playbooks", "agent_playbooks"]] | None = None
    agent_playbook_status_filter: list[PlaybookStatus] | None = None
    conversation_history: list[ConversationTurn] | None = None
    enable_agent_answer: bool | None = False
    request_id: Ident | None = None
    session_id: Ident | None = None
    interaction_id: RowId | None = None


class _Found(NoticeResponse):
    degraded: bool = False
    search_mode_effective: str | None = None
    explanations: list[Explanation] | None = None
    next_cursor: str | None = None


class SearchInteractionsResponse(_Found):
    """Turns, best first."""

    interactions: list[Interaction] = []


class SearchProfilesResponse(_Found):
    """Profiles, best first."""

    user_profiles: list[UserProfile] = []


class SearchUserPlaybooksResponse(_Found):
    """User playbooks, best first."""

    user_playbooks: list[UserPlaybook] = []


class SearchAgentPlaybooksResponse(_Found):
    """Agent playbooks, best first."""

    agent_playbooks: list[AgentPlaybook] = []


class UnifiedSearchResponse(_Found):
    """Learnings of each kind, best first."""

    profiles: list[UserProfile] = []
    user_playbooks: list[UserPlaybook] = []
    agent_playbooks: list[AgentPlaybook] = []


class ContextRequest(RequestModel):
    """The message that the next prompt answers, and the room for the context. Without a message there is only what
    always holds."""

    query: Query | None = None
    user_id: Ident | None = None
    agent_version: str | None = None
    max_tokens: Annotated[int, Field(gt=0, le=1_000_000)] = 1000
    include_pending: bool = False
    include_always: bool = True
    include_relevant: bool = True
    always_share: Annotated[float, Field(ge=0, le=1)] | None = None


class ContextItem(ResponseModel):
    """A learning inside a context, and the layer that it came from."""

    kind: Literal["profile", "user_playbook", "agent_playbook"]
    id: str
    layer: Literal["always", "relevant"] = "relevant"


class ContextResponse(NoticeResponse):
    """The text for the prompt, and the learnings in it."""

    context: str = ""
    items: list[ContextItem] = []
    tokens: int = 0
    degraded: bool = False
