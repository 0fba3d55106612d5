"""Upgrades and downgrades of a generation of learnings."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from reflexio.models.shape import Answered, Name, NonEmpty, Sent, Version

ProfileIds = Annotated[list[NonEmpty], Field(max_length=10_000)]


@dataclass(frozen=True)
class Upgrade:
    """How many rows became current, were archived, and were deleted."""

    promoted: int = 0
    archived: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class Downgrade:
    """How many rows became current again, and how many were archived instead."""

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
    """Selects pending profiles that become current. All conditions apply."""


class DowngradeProfilesRequest(_ProfileScope):
    """Selects archived profiles that become current again. All conditions apply."""


class UpgradeUserPlaybooksRequest(_PlaybookScope):
    """Selects pending user playbooks that become current. All conditions apply."""

    archive_current: bool = True


class DowngradeUserPlaybooksRequest(_PlaybookScope):
    """Selects archived user playbooks that become current again. All conditions apply."""


class UpgradeProfilesResponse(Answered):
    """The number of profiles that changed status."""

    success: bool = True
    profiles_archived: int = 0
    profiles_promoted: int = 0
    profiles_deleted: int = 0
    message: str = ""


class UpgradeUserPlaybooksResponse(Answered):
    """The number of user playbooks that changed status."""

    success: bool = True
    user_playbooks_deleted: int = 0
    user_playbooks_archived: int = 0
    user_playbooks_promoted: int = 0
    message: str = ""


class DowngradeProfilesResponse(Answered):
    """The number of profiles that changed status."""

    success: bool = True
    profiles_demoted: int = 0
    profiles_restored: int = 0
    message: str = ""


class DowngradeUserPlaybooksResponse(Answered):
    """The number of user playbooks that changed status."""

    success: bool = True
    user_playbooks_demoted: int = 0
    user_playbooks_restored: int = 0
    message: str = ""
