"""Optimisation jobs, their candidates, evaluations and events."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reflexio.models.optimisation import PlaybookOptimizationEvent, PlaybookOptimizationJob, TargetKind
from reflexio.models.paging import Listing, Page


@dataclass(frozen=True)
class StoredCandidate:
    """A candidate wording. `place` counts from the incumbent, which is 0."""

    place: int
    content: str
    parents: tuple[int, ...] = ()
    score: float | None = None
    is_winner: bool = False
    created_at: int = 0
    id: int = 0


@dataclass(frozen=True)
class StoredEvaluation:
    """How a candidate did in a scenario with turns of this user. `document` contains no words of the user."""

    place: int
    scene: str
    user_id: str
    document: dict[str, Any] = field(default_factory=dict)
    created_at: int = 0
    id: int = 0


class Optimisations(Protocol):
    """Optimisation jobs. What is stored twice, as after a crash, exists once."""

    def add(self, job: PlaybookOptimizationJob) -> PlaybookOptimizationJob:
        """The job with its id."""

    def get(self, job_id: int) -> PlaybookOptimizationJob | None: ...

    def put(self, job: PlaybookOptimizationJob) -> None:
        """Replaces the one with the same id."""

    def page(self, page: Page) -> Listing[PlaybookOptimizationJob]:
        """Newest first."""

    def of_target(self, kind: TargetKind, target_id: int, limit: int) -> list[PlaybookOptimizationJob]:
        """The newest jobs of a playbook, newest first."""

    def unfinished(self) -> list[PlaybookOptimizationJob]:
        """Oldest first."""

    def trim(self, keep: int) -> int:
        """Removes all but the newest ended jobs, with their rows."""

    def keep_wordings(self, job_id: int, wordings: Sequence[StoredCandidate]) -> None: ...

    def wordings(self, job_id: int) -> list[StoredCandidate]: ...

    def keep_evaluations(self, job_id: int, evaluations: Sequence[StoredEvaluation]) -> None: ...

    def evaluations(self, job_id: int) -> list[StoredEvaluation]:
        """In the order of their creation."""

    def keep_events(self, job_id: int, events: Sequence[PlaybookOptimizationEvent]) -> None:
        """`event_id` counts within the job."""

    def events(self, job_id: int) -> list[PlaybookOptimizationEvent]: ...
