"""Review on the wire: playbooks that wait for a decision, with support and disagreement."""

from typing import Annotated

from pydantic import Field, StringConstraints

from reflexio.models.paging import Cursor
from reflexio.models.playbook import AgentPlaybook
from reflexio.models.profile import Text
from reflexio.models.provenance import LineageEntry
from reflexio.models.shape import Answered, RowId, Sent
from reflexio.models.status import PlaybookStatus

MOST_DECIDED = 1000
Reviewer = Annotated[str, StringConstraints(max_length=255)]
Ids = Annotated[list[RowId], Field(min_length=1, max_length=MOST_DECIDED)]


class GetReviewQueueRequest(Sent):
    """Selects playbooks to review: pending ones, or one by its id."""

    limit: Annotated[int, Field(gt=0, le=100)] = 20
    agent_playbook_id: RowId | None = None
    playbook_name: str | None = None
    agent_version: str | None = None
    cursor: Cursor | None = None


class Testimony(Answered):
    """A user playbook, with the words it was learned from."""

    user_playbook_id: int
    user_id: str | None = None
    trigger: str | None = None
    content: str
    source_span: str | None = None


class ReviewItem(Answered):
    """A playbook with its support and the disagreement about it.

    `difference` holds the lines that change, with + and -, where it would replace another one.
    """

    agent_playbook: AgentPlaybook
    support: int = 0
    evidence_count: int = 0
    evidence: list[Testimony] = []
    disagreement: list[Testimony] = []
    replaces: list[AgentPlaybook] = []
    difference: str = ""
    history: list[LineageEntry] = []


class GetReviewQueueResponse(Answered):
    """A page of the queue, newest first."""

    success: bool = True
    items: list[ReviewItem] = []
    pending_count: int = 0
    msg: str | None = None
    next_cursor: str | None = None


class ReviewAgentPlaybooksRequest(Sent):
    """One decision about several playbooks."""

    agent_playbook_ids: Ids
    playbook_status: PlaybookStatus
    reviewer: Reviewer = ""
    reason: Text = ""


class UndoReviewRequest(Sent):
    """Playbooks whose last decision is undone."""

    agent_playbook_ids: Ids
    reviewer: Reviewer = ""
    reason: Text = ""


class ReviewResponse(Answered):
    """The result, and which other playbooks were retired or restored."""

    success: bool = True
    changed_count: int = 0
    retired_ids: list[int] = []
    restored_ids: list[int] = []
    msg: str | None = None
