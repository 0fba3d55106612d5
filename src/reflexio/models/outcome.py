"""Outcomes of playbooks: how often an attempt with one succeeded or failed, and how often it was learned."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from reflexio.models.shape import Answered, RowId, Sent

Outcome: TypeAlias = Literal["helped", "hurt", "repeated"]
Ids = Annotated[list[RowId], Field(max_length=1000)]


class Outcomes(Answered):
    """How often it helped, hurt, and was learned once more."""

    helped: int = 0
    hurt: int = 0
    repeated: int = 0


class RecordOutcomeRequest(Sent):
    """An outcome of playbooks."""

    outcome: Outcome
    user_playbook_ids: Ids = []
    agent_playbook_ids: Ids = []
