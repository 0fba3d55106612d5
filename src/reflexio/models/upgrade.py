"""Putting a new generation of learnings in the place of the old one, and back."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from reflexio.models.shape import Answered, Name, NonEmpty, Sent, Version

ProfileIds = Annotated[list[NonEmpty], Field(max_length=10_000)]


@dataclass(frozen=True)
class Upgrade:
    """How many rows became current, how many stepped back, and how many older ones went."""

    promoted: int = 0
    archived: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class Downgrade:
    """How many archived rows are current again, and how many took their place."""

    restored: int = 0
    demoted: int = 0


class _ProfileScope(Sent):
    user_id: Name | None = None
    profile_ids: ProfileIds | None = None
    only_affected_users: bool = False


class _PlaybookScope(Sent):
    agent_version: Version | None = None
    playbook_name: Name | None = None


class UpgradeProfilesRequest(_ProfileScope):
    """Whose pending profiles become current. All conditions hold together."""


class DowngradeProfilesRequest(_ProfileScope):
    """Whose archived profiles become current again. All conditions hold together."""


class UpgradeUserPlaybooksRequest(_PlaybookScope):
    """Which pending user playbooks become current. All conditions hold together."""

    archive_current: bool = True


class DowngradeUserPlaybooksRequest(_PlaybookScope):
    """Which archived user playbooks become current again. All conditions hold together."""


class UpgradeProfilesResponse(Answered):
    """How many profiles changed places."""

    success: bool = True
    profiles_archived: int = 0
    profiles_promoted: int = 0
    profiles_deleted: int = 0
    message: str = ""


class UpgradeUserPlaybooksResponse(Answered):
    """How many user playbooks changed places."""

    success: bool = True
    user_playbooks_deleted: int = 0
    user_playbooks_archived: int = 0
    user_playbooks_promoted: int = 0
    message: str = ""


class DowngradeProfilesResponse(Answered):
    """How many profiles changed places."""

    success: bool = True
    profiles_demoted: int = 0
    profiles_restored: int = 0
    message: str = ""


class DowngradeUserPlaybooksResponse(Answered):
    """How many user playbooks changed places."""

    success: bool = True
    user_playbooks_demoted: int = 0
    user_playbooks_restored: int = 0
    message: str = ""
