"""Reads all rows of an organisation in the order of their numbers, and stores turns with what is known about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reflexio.models.interaction import Request
from reflexio.models.learning import Learning
from reflexio.models.transfer import TransferredTurn
from reflexio.ports.storage.learnings import LineageEvent


@dataclass(frozen=True)
class StoredRequest:
    """A request with the number of its row, and its turns as they are stored, images included."""

    number: int
    request: Request
    turns: list[dict[str, Any]]


class Transfers(Protocol):
    """What an export reads, and an import writes beyond the other ports."""

    def counts(self) -> dict[str, int]:
        """How many requests, turns and learnings there are."""

    def learnings(self, after: int, limit: int, most_bytes: int) -> list[Learning]:
        """Of all kinds and statuses, in the order of their numbers, from the one behind `after`."""

    def requests(self, after: int, limit: int, most_bytes: int) -> list[StoredRequest]:
        """In the order of their numbers, from the one behind `after`."""

    def lineage(self, learning_ids: Sequence[int]) -> dict[int, list[LineageEvent]]:
        """The events of several learnings, oldest first."""

    def pools(self) -> list[tuple[str, str]]:
        """The agent version and type of each pool that has been clustered."""

    def cluster_members(self, agent_version: str, name: str) -> dict[int, list[int]]:
        """The numbers of the user and agent playbooks of each cluster of a pool."""

    def add_turns(self, request: Request, turns: Sequence[TransferredTurn]) -> list[int]:
        """Stores the turns of a request that is stored; returns their numbers."""

    def turn_numbers(self, request_id: str) -> list[int]:
        """The turns of a request, oldest first."""
