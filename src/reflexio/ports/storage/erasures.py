"""What is left of a user in every table, and the receipts of erasures."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class UnfinishedErasure:
    """An erasure that has begun: what the user had by table and by kind of row, and the user's names."""

    user_id: str
    withdraw_unsupported: bool = False
    tables: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    started_at: int = 0


class Erasures(Protocol):
    def begin(self, erasure: UnfinishedErasure) -> UnfinishedErasure:
        """Records that an erasure has begun, so that it goes on after a crash; returns an earlier one if there is."""

    def unfinished(self) -> list[UnfinishedErasure]: ...

    def count(self, user_id: str) -> dict[str, int]:
        """The user's rows in each table that may have some, found by indexes."""

    def leftovers(self, user_id: str) -> dict[str, int]:
        """The same after an erasure, from whole tables: also rows whose turn, learning or job is gone."""

    def unfinished_jobs(self, user_id: str) -> list[str]:
        """The keys of the jobs that work on this user alone."""

    def remove_some(self, user_id: str) -> int:
        """Removes all but the turns, requests and learnings, which must still be there: the rest is found by them.

        As many rows as one write may remove: call it until it returns 0, each time in another write.
        """

    def end(self, user_id: str) -> None:
        """Removes the record that the erasure has begun."""

    def names(self, user_id: str) -> set[str]:
        """Agent versions and sources of the user, of which some may be used by nobody else."""

    def remove_unused_names(self, names: Set[str]) -> None:
        """Removes those that nobody uses any more from operations."""

    def remove_empty_pools(self) -> None:
        """Removes pools and clusters that have no playbook any more."""

    def add_receipt(self, digest: str, now: int) -> None: ...

    def has_receipt(self, digest: str) -> bool: ...
