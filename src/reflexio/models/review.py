"""Review on the wire: what waits for a person's decision, and what speaks for and against it."""

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
    """Which playbooks to review: those that wait, or one whatever was decided about it."""

    limit: Annotated[int, Field(gt=0, le=100)] = 20
    agent_playbook_id: RowId | None = None
    playbook_name: str | None = None
    agent_version: str | None = None
    cursor: Cursor | None = None


class Testimony(Answered):
    """What one user taught, and the words it was learned from."""

    user_playbook_id: int
    user_id: str | None = None
    trigger: str | None = None
    content: str
    source_span: str | None = None


class ReviewItem(Answered):
    """A playbook and what speaks for and against it.

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
    """Playbooks about which the last decision is taken back."""

    agent_playbook_ids: Ids
    reviewer: Reviewer = ""
    reason: Text = ""


class ReviewResponse(Answered):
    """What became of them, and which others were retired or stand again."""

    success: bool = True
    changed_count: int = 0
    retired_ids: list[int] = []
    restored_ids: list[int] = []
    msg: str | None = None
