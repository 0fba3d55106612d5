"""Exposures: which learnings were in the prompt of which turns."""

from collections.abc import Sequence
from typing import Protocol

from reflexio.models.learning import Kind


class Exposures(Protocol):
    """Turns are counted once they are indexed, a moment after their publish."""

    def counts(self, kind: Kind, public_ids: Sequence[str], most: int) -> dict[str, int]:
        """In how many prompts each was; counting stops at `most`. Those that never were are missing."""

    def newest(self, kind: Kind, public_id: str, limit: int) -> list[int]:
        """The numbers of the turns whose prompt had it, newest first."""
