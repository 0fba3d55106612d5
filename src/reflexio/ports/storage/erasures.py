"""What is left of a user in every table, and the receipts of erasures."""

from collections.abc import Set
from typing import Protocol


class Erasures(Protocol):
    def count(self, user_id: str) -> dict[str, int]:
        """The user's rows in each table that may have some, found by indexes."""

    def leftovers(self, user_id: str) -> dict[str, int]:
        """The same after an erasure, from whole tables: also rows whose turn, learning or job is gone."""

    def unfinished_jobs(self, user_id: str) -> list[str]:
        """The keys of the jobs that work on this user alone."""

    def remove(self, user_id: str) -> None:
        """Removes all but the turns, requests and learnings, which must still be there: the rest is found by them."""

    def names(self, user_id: str) -> set[str]:
        """Agent versions and sources of the user, of which some may be used by nobody else."""

    def remove_unused_names(self, names: Set[str]) -> None:
        """Removes those that nobody uses any more from operations."""

    def remove_empty_pools(self) -> None:
        """Removes pools and clusters that have no playbook any more."""

    def add_receipt(self, digest: str, now: int) -> None: ...

    def has_receipt(self, digest: str) -> bool: ...
