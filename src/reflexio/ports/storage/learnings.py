"""Learnings, the windows they were learned from, and their lineage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reflexio.models.learning import Kind, Learning, PlaybookStatus, Scope, Status
from reflexio.models.paging import Listing, Page
from reflexio.ports.storage.index import NO_VECTORS, Matched, QueryVector, TextVectors
from reflexio.ports.storage.interactions import ALWAYS, Days, TimeRange


@dataclass(frozen=True)
class LearnedWindow:
    """The result of a window. Its state is `learned`, `set_aside`, or `failed` when it is tried again."""

    key: str
    user_id: str
    state: str
    turn_ids: tuple[int, ...]
    counts: dict[str, int]
    learner: str = ""
    fingerprint: str = ""
    error: str = ""
    created_at: int = 0


@dataclass(frozen=True)
class FinishedStep:
    """The result of a step of a window that is not learned yet. It counts for the same turns and the same setup."""

    user_id: str
    window_key: str
    step: str
    setup: str
    turn_ids: tuple[int, ...]
    result: dict[str, Any]
    created_at: int = 0


@dataclass(frozen=True)
class LearningCounts:
    """The number of current learnings of a user, and when the profiles among them changed. `unembedded` counts those
    of any status without a vector."""

    profiles: int
    playbooks: int
    oldest_profile: int
    newest_profile: int
    unembedded: int


@dataclass(frozen=True)
class LearningFilter:
    """Conditions for learnings. None means any; `alive_at` excludes what has expired by then.

    `or_in_review` also lets current rows through that wait for a person's decision. `of_users_with` leaves only
    rows of users who have a row that passes that other filter.
    """

    kind: Kind
    ids: tuple[int, ...] | None = None
    keys: tuple[str, ...] | None = None
    user_id: str | None = None
    agent_version: str | None = None
    name: str | None = None
    source: str | None = None
    request_id: str | None = None
    statuses: tuple[Status, ...] | None = (Status.CURRENT,)
    or_in_review: bool = False
    clusters: tuple[int, ...] | None = None
    reviews: tuple[PlaybookStatus, ...] | None = None
    scope: Scope | None = None
    within: TimeRange = ALWAYS
    expires_within: TimeRange = ALWAYS
    tags: tuple[str, ...] = ()
    contains: str | None = None
    time_to_live: str | None = None
    alive_at: int | None = None
    of_users_with: "LearningFilter | None" = None

    @property
    def is_narrow(self) -> bool:
        """Whether only few of the index's rows may pass."""
        asked = (self.ids, self.keys, self.agent_version, self.name, self.source, self.request_id, self.contains)
        times = (self.within.start, self.within.end, self.expires_within.start, self.expires_within.end)
        window = (*times, self.time_to_live, self.clusters, self.scope)
        standing = self.statuses != (Status.CURRENT,)
        return any(each is not None for each in (*asked, *window)) or bool(self.tags) or standing


@dataclass(frozen=True)
class LineageEvent:
    """An event in the life of a learning. `details` holds what is needed to undo it."""

    learning_id: int
    kind: Kind
    op: str
    at: int
    actor: str = ""
    reason: str = ""
    from_status: str = ""
    to_status: str = ""
    details: dict[str, Any] = field(default_factory=dict)


class Learnings(Protocol):
    def add(self, learnings: Sequence[Learning], vectors: TextVectors = NO_VECTORS) -> list[int]:
        """Stores new rows and returns their ids. Raises Conflict on a taken key.

        They are indexed by words at once, and by vector those whose text is in `vectors`; the others are queued.
        """

    def get(self, where: LearningFilter) -> Learning | None:
        """The one row that matches, if any."""

    def many(self, ids: Sequence[int]) -> dict[int, Learning]:
        """Rows by id; deleted ones are missing."""

    def of_requests(self, request_ids: Sequence[str], limit: int) -> list[Learning]:
        """Learnings of any kind and status that came with these requests, oldest first."""

    def page(self, where: LearningFilter, page: Page) -> Listing[Learning]:
        """Newest first."""

    def replace(self, learning: Learning, vectors: TextVectors = NO_VECTORS) -> None:
        """Replaces the row with the same id. A changed text is indexed as that of a new row."""

    def vectors(self, ids: Sequence[int], model: str) -> dict[int, bytes]:
        """The stored half-precision vectors of this embedder; rows without one are missing."""

    def move(self, where: LearningFilter, moves: Mapping[Status, Status]) -> dict[int, Status]:
        """Changes the status of matching rows, all at once, and nothing else.

        `where.statuses` does not count. Tells from which status each row went.
        """

    def remove(self, where: LearningFilter) -> int:
        """Removes few rows: every writer waits for it."""

    def remove_some(self, where: LearningFilter) -> int:
        """Removes as many rows as one write may remove. Call it until it returns 0, each time in another write."""

    def count(self, where: LearningFilter) -> int: ...

    def count_up_to(self, where: LearningFilter, most: int) -> int:
        """The same, but counting stops at `most`."""

    def count_by_day(self, kind: Kind, days: Days) -> dict[int, int]:
        """How many were learned or added on each day. Days without any are missing."""

    def count_requests(self, where: LearningFilter) -> int:
        """The number of requests that matching rows were learned from."""

    def by_words(self, where: LearningFilter, query: str, limit: int) -> Matched:
        """Rows that pass the filter, best match of words first."""

    def by_vector(self, where: LearningFilter, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched:
        """Rows that pass the filter, nearest first, followed by those of `also` that are not among them."""

    def note(self, *events: LineageEvent) -> None: ...

    def lineage(self, learning_id: int) -> list[LineageEvent]:
        """Oldest first."""

    def count_learnings(self, user_id: str, now: int) -> LearningCounts: ...


class Windows(Protocol):
    def get(self, key: str) -> LearnedWindow | None: ...

    def add(self, window: LearnedWindow) -> None: ...

    def of_turns(self, user_id: str, turn_ids: Sequence[int]) -> list[LearnedWindow]:
        """Windows with one of these turns, newest first."""

    def set_aside(self, limit: int) -> list[LearnedWindow]:
        """Windows of all users that were set aside, newest first."""

    def finished_steps(self, user_id: str) -> list[FinishedStep]:
        """Of all windows of this user. The deletion of one of the user's turns deletes them."""

    def keep_step(self, step: FinishedStep) -> None:
        """Stores the step, in place of one of the same name of the same window."""

    def drop_steps(self, user_id: str, turn_ids: Sequence[int]) -> None:
        """Removes the steps of windows with one of these turns."""
