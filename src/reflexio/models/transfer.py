"""Export and import of an organisation on the wire.

Rows refer to each other by numbers: to learnings, and to turns. On the wire these are numbers of stored rows; in a file
they are places, and `client/transfer.py` translates.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from reflexio.models.interaction import InteractionData
from reflexio.models.learning import Kind, PlaybookStatus, Scope, Status
from reflexio.models.wire import (
    NEVER_EXPIRES,
    Epoch,
    JsonObject,
    Name,
    RequestModel,
    ResponseModel,
    RowId,
    SuccessResponse,
    Version,
)

ExportPart = Literal["summary", "configuration", "learnings", "requests", "links", "pools"]
"""The parts of an export, in the order of the file: a row only refers to rows before it."""
MOST_ROWS = 1000
Place = Annotated[int, Field(ge=0, le=2**63 - 1)]
ShortText = Annotated[str, StringConstraints(max_length=1000)]
LongText = Annotated[str, StringConstraints(max_length=1_000_000)]


class ExportRowsRequest(RequestModel):
    """Selects a page of one part of the organisation's rows."""

    part: ExportPart
    after: Place = 0
    limit: Annotated[int, Field(gt=0, le=MOST_ROWS)] = 200


class ExportRowsResponse(ResponseModel):
    """A page of rows, and after which number the next page begins. The summary has counts instead."""

    rows: list[dict[str, Any]] = []
    next_after: int | None = None
    counts: dict[str, int] = {}


class TransferredTurn(InteractionData):
    """A turn with what learning knows about it."""

    is_learned: bool = True
    profiles_unread: bool = False
    playbooks_unread: bool = False


class TransferredRequest(RequestModel):
    """One publish with its turns."""

    request_id: Name
    user_id: Name
    session_id: Name
    created_at: Epoch
    source: ShortText = ""
    agent_version: Version = ""
    evaluation_only: bool = False
    session_finished: bool = False
    skip_aggregation: bool = False
    force_extraction: bool = False
    retrieval_experiment_id: Name | None = None
    retrieval_experiment_arm: Literal["treatment", "holdout"] | None = None
    redacted_count: Place = 0
    turns: Annotated[list[TransferredTurn], Field(max_length=MOST_ROWS)] = []


class TransferredLearning(RequestModel):
    """A learning of any kind and status, without what it refers to.

    Without a scope it is decided as for a learning that is added. `copy_number` counts the learnings before it in the
    file that say the same about the same user at the same time.
    """

    kind: Kind
    key: ShortText = ""
    user_id: ShortText = ""
    agent_version: Version = ""
    name: ShortText = ""
    source: ShortText = ""
    request_id: ShortText = ""
    status: Status = Status.CURRENT
    review: PlaybookStatus = PlaybookStatus.PENDING
    scope: Scope | None = None
    trigger: LongText = ""
    content: LongText
    rationale: LongText = ""
    tags: Annotated[list[ShortText], Field(max_length=1000)] = []
    details: JsonObject = {}
    created_at: Epoch
    modified_at: Epoch
    expires_at: Place = NEVER_EXPIRES
    copy_number: Place = 0


class TransferredEvent(RequestModel):
    """An event in the life of a learning."""

    op: ShortText
    at: Epoch
    actor: ShortText = ""
    reason: LongText = ""
    from_status: ShortText = ""
    to_status: ShortText = ""
    details: JsonObject = {}


class TransferredLinks(RequestModel):
    """What a learning refers to, and its history. A learning that has links already keeps its own."""

    learning: RowId
    details: JsonObject = {}
    events: Annotated[list[TransferredEvent], Field(max_length=10_000)] = []


class TransferredCluster(RequestModel):
    """Playbooks about one topic, and which agent playbook among them summarises it last; 0 is none."""

    number: RowId
    agent_playbook: Place = 0
    members: Annotated[list[RowId], Field(max_length=1_000_000)] = []


class TransferredPool(RequestModel):
    """The clusters of one agent version and playbook type."""

    agent_version: Version = ""
    name: ShortText = ""
    clusters: Annotated[list[TransferredCluster], Field(max_length=100_000)] = []


class ImportRowsRequest(RequestModel):
    """Rows to store. What is there already stays as it is."""

    configuration: JsonObject | None = None
    learnings: Annotated[list[TransferredLearning], Field(max_length=MOST_ROWS)] = []
    requests: Annotated[list[TransferredRequest], Field(max_length=MOST_ROWS)] = []
    links: Annotated[list[TransferredLinks], Field(max_length=MOST_ROWS)] = []
    pools: Annotated[list[TransferredPool], Field(max_length=MOST_ROWS)] = []


class ImportedRow(ResponseModel):
    """What became of one row: its number here, and those of its turns; why it was not stored, if it was not."""

    is_added: bool = False
    row: int = 0
    turns: list[int] = []
    reason: str = ""


class ImportRowsResponse(SuccessResponse):
    """What became of each row, in the order of the request."""

    configuration: ImportedRow | None = None
    learnings: list[ImportedRow] = []
    requests: list[ImportedRow] = []
    links: list[ImportedRow] = []
    pools: list[ImportedRow] = []


@dataclass(frozen=True)
class ImportCount:
    """How many rows of one kind were stored, were there already, and could not be stored."""

    added: int = 0
    present: int = 0
    refused: int = 0


@dataclass(frozen=True)
class ImportReport:
    """What an import did. It is complete when the file had its last line; then a second import adds nothing."""

    counts: dict[str, ImportCount] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    is_complete: bool = False
