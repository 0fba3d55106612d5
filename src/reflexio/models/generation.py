"""Learning from stored turns once more: all of them beside what is current, or the last ones into it."""

from typing import Annotated

from pydantic import Field

from reflexio.models.shape import Answered, Moment, Name, Sent, Source, Version

DEFAULT_VERSION = "agent-v0"
Unused = Annotated[list[str], Field(max_length=1000)]


class RerunProfileGenerationRequest(Sent):
    """From which turns profiles are learned anew. All conditions hold together."""

    user_id: Name | None = None
    start_time: Moment | None = None
    end_time: Moment | None = None
    source: Source | None = None
    extractor_names: Unused | None = None


class RerunPlaybookGenerationRequest(Sent):
    """From which turns user playbooks are learned anew. All conditions hold together."""

    agent_version: Version = DEFAULT_VERSION
    start_time: Moment | None = None
    end_time: Moment | None = None
    source: Source | None = None
    playbook_name: str | None = None


class ManualProfileGenerationRequest(Sent):
    """Whose last turns are learned from now, for profiles."""

    user_id: Name | None = None
    source: Source | None = None
    extractor_names: Unused | None = None


class ManualPlaybookGenerationRequest(Sent):
    """Which last turns are learned from now, for user playbooks."""

    agent_version: Version = DEFAULT_VERSION
    source: Source | None = None
    playbook_name: str | None = None


class RerunProfileGenerationResponse(Answered):
    """Whether it was begun, and under which id it can be followed."""

    success: bool = True
    msg: str | None = None
    profiles_generated: int | None = None
    operation_id: str = ""


class RerunPlaybookGenerationResponse(Answered):
    """Whether it was begun, and under which id it can be followed."""

    success: bool = True
    msg: str | None = None
    playbooks_generated: int | None = None
    operation_id: str = ""


class ManualProfileGenerationResponse(Answered):
    """What came of it."""

    success: bool = True
    msg: str | None = None
    profiles_generated: int | None = None


class ManualPlaybookGenerationResponse(Answered):
    """What came of it."""

    success: bool = True
    msg: str | None = None
    playbooks_generated: int | None = None
