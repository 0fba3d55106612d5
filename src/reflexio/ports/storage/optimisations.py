"""Searches for better wording, and what was tried in them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reflexio.models.optimisation import PlaybookOptimizationEvent, PlaybookOptimizationJob, TargetKind
from reflexio.models.paging import Listing, Page


@dataclass(frozen=True)
class Wording:
    """A wording that an optimisation tried. `place` counts from the incumbent, which is 0."""

    place: int
    content: str
    parents: tuple[int, ...] = ()
    score: float | None = None
    is_winner: bool = False
    created_at: int = 0
    id: int = 0


@dataclass(frozen=True)
class Evaluated:
    """How the wording of a place did in a scene with turns of this user. `document` has no words of theirs in it."""

    place: int
    scene: str
    user_id: str
    document: dict[str, Any] = field(default_factory=dict)
    created_at: int = 0
    id: int = 0


class Optimisations(Protocol):
    """Searches for better wording. What is kept of one twice, as after a crash, is there once."""

    def add(self, job: PlaybookOptimizationJob) -> PlaybookOptimizationJob:
        """The job with its number."""
        ...

    def get(self, job_id: int) -> PlaybookOptimizationJob | None: ...

    def put(self, job: PlaybookOptimizationJob) -> None:
        """The one of the same number becomes this one."""
        ...

    def page(self, page: Page) -> Listing[PlaybookOptimizationJob]:
        """Newest first."""
        ...

    def of_target(self, kind: TargetKind, target_id: int, limit: int) -> list[PlaybookOptimizationJob]:
        """The newest ones of a playbook, newest first."""
        ...

    def unfinished(self) -> list[PlaybookOptimizationJob]:
        """Oldest first."""
        ...

    def trim(self, keep: int) -> int:
        """Removes all but the newest jobs that have ended, with everything of theirs."""
        ...

    def keep_wordings(self, job_id: int, wordings: Sequence[Wording]) -> None: ...

    def wordings(self, job_id: int) -> list[Wording]: ...

    def keep_evaluations(self, job_id: int, evaluations: Sequence[Evaluated]) -> None: ...

    def evaluations(self, job_id: int) -> list[Evaluated]:
        """In the order they were made."""
        ...

    def keep_events(self, job_id: int, events: Sequence[PlaybookOptimizationEvent]) -> None:
        """`event_id` is its number within the job."""
        ...

    def events(self, job_id: int) -> list[PlaybookOptimizationEvent]: ...

    def forget_user(self, user_id: str) -> None:
        """What was tried with turns of this user is gone."""
        ...
