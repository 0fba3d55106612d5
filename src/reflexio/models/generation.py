"""Reruns and manual runs of learning on the wire."""

from typing import Annotated

from pydantic import Field

from reflexio.models.shape import Answered, Moment, Name, Sent, Source, Version

DEFAULT_VERSION = "agent-v0"
Unused = Annotated[list[str], Field(max_length=1000)]


class RerunProfileGenerationRequest(Sent):
    """Selects turns from which profiles are learned again. All conditions apply."""

    user_id: Name | None = None
    start_time: Moment | None = None
    end_time: Moment | None = None
    source: Source | None = None
    extractor_names: Unused | None = None


class RerunPlaybookGenerationRequest(Sent):
    """Selects turns from which user playbooks are learned again. All conditions apply."""

    agent_version: Version = DEFAULT_VERSION
    start_time: Moment | None = None
    end_time: Moment | None = None
    source: Source | None = None
    playbook_name: str | None = None


class ManualProfileGenerationRequest(Sent):
    """Selects users whose last turns are learned now, for profiles."""

    user_id: Name | None = None
    source: Source | None = None
    extractor_names: Unused | None = None


class ManualPlaybookGenerationRequest(Sent):
    """Selects turns that are learned now, for user playbooks."""

    agent_version: Version = DEFAULT_VERSION
    source: Source | None = None
    playbook_name: str | None = None


class RerunProfileGenerationResponse(Answered):
    """Whether the rerun began, and the id of its operation."""

    success: bool = True
    msg: str | None = None
    profiles_generated: int | None = None
    operation_id: str = ""


class RerunPlaybookGenerationResponse(Answered):
    """Whether the rerun began, and the id of its operation."""

    success: bool = True
    msg: str | None = None
    playbooks_generated: int | None = None
    operation_id: str = ""


class ManualProfileGenerationResponse(Answered):
    """The result of the run."""

    success: bool = True
    msg: str | None = None
    profiles_generated: int | None = None


class ManualPlaybookGenerationResponse(Answered):
    """The result of the run."""

    success: bool = True
    msg: str | None = None
    playbooks_generated: int | None = None
