"""Provenance on the wire: the turns behind a learning, its learner, and what it replaced."""

from typing import Annotated, Literal

from pydantic import StringConstraints

from reflexio.models.interaction import Interaction
from reflexio.models.learning import Kind
from reflexio.models.playbook import UserPlaybook
from reflexio.models.shape import Answered, Sent
from reflexio.models.status import Status

ProvenanceStatus = Literal["exact", "best_effort", "unavailable"]
LearningId = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255)]


class GetLearningProvenanceRequest(Sent):
    """Names a learning."""

    kind: Kind
    id: LearningId


class LineageEntry(Answered):
    """An event in the lineage of a learning."""

    op: str
    at: int
    actor: str = ""
    reason: str = ""
    from_status: str = ""
    to_status: str = ""


class Replaced(Answered):
    """A learning that it replaced."""

    id: str
    content: str
    status: Status
    modified_at: int


class SourceUserPlaybook(Answered):
    """A source of an agent playbook, with its turns."""

    user_playbook: UserPlaybook
    interactions: list[Interaction] = []
    source_interaction_ids: list[int] = []


class LearningProvenanceResponse(Answered):
    """The provenance of a learning."""

    success: bool = True
    target_kind: Kind
    target_id: str
    provenance_status: ProvenanceStatus = "unavailable"
    trigger_request_id: str | None = None
    interactions: list[Interaction] = []
    source_user_playbooks: list[SourceUserPlaybook] = []
    source_span: str | None = None
    learner: str | None = None
    fingerprint: str | None = None
    replaced: list[Replaced] = []
    events: list[LineageEntry] = []
    msg: str | None = None
