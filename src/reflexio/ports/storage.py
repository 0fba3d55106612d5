"""Keeping things. Storage answers small questions; ranking, thresholds and merging are decided above it.

Reads and writes are plain synchronous functions of a transaction: `await store.read(fn)` sees one consistent
state, `await store.write(fn)` commits all of it, durably, or nothing. A function may be run again or grouped
with others into one commit, so it has no effects but those on its transaction.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from reflexio.models.interaction import Interaction, InteractionData, Request
from reflexio.models.learned import Spend
from reflexio.models.learning import Kind, Learning
from reflexio.models.operation import Operation, Outcome
from reflexio.models.optimisation import PlaybookOptimizationEvent, PlaybookOptimizationJob, TargetKind
from reflexio.models.paging import Listing, Page
from reflexio.models.stall import Stall
from reflexio.models.status import PlaybookStatus, Status
from reflexio.models.usage import Spent
from reflexio.ports.work import Journal

T = TypeVar("T")


@dataclass(frozen=True)
class TimeRange:
    """Seconds since 1970, both ends included; None is open."""

    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class RequestFilter:
    user_id: str | None = None
    request_id: str | None = None
    session_id: str | None = None
    source: str | None = None
    within: TimeRange = TimeRange()


@dataclass(frozen=True)
class Receipt:
    """The first answer to an idempotency key, and what was asked then."""

    fingerprint: str
    answer: str


@dataclass(frozen=True)
class Waiting:
    """A user with turns that nobody has learned from yet. `retry_at` is when a failed window may be tried again."""

    org_id: str
    user_id: str
    unlearned_since: int
    published_at: int
    attempts: int = 0
    retry_at: int = 0
    last_error: str = ""


@dataclass(frozen=True)
class Backlog:
    """How many turns of a user nobody has learned from, and whether one of them ends a session or is not to wait."""

    turns: int = 0
    is_urgent: bool = False


@dataclass(frozen=True)
class Unlearned:
    """A turn to learn from, with what its request says about it."""

    turn: Interaction
    request: Request


@dataclass(frozen=True)
class LearnedWindow:
    """What came of a window. State `learned`, `set_aside`, or `failed` when it is tried again."""

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
class Key:
    """An API key as it is stored: the token itself is not."""

    id: int
    org_id: str
    label: str
    prefix: str
    created_at: int


@dataclass(frozen=True)
class Tally:
    """How many current learnings a user has, and when the profiles among them changed. `unembedded` are those of any
    status that wait for their vector."""

    profiles: int
    playbooks: int
    oldest_profile: int
    newest_profile: int
    unembedded: int


@dataclass(frozen=True)
class LearningFilter:
    """Which learnings. What is None is not asked for; `alive_at` leaves out what has expired by then.

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
    within: TimeRange = TimeRange()
    tags: tuple[str, ...] = ()
    contains: str | None = None
    time_to_live: str | None = None
    alive_at: int | None = None
    of_users_with: "LearningFilter | None" = None

    @property
    def is_narrow(self) -> bool:
        """Whether it may leave only few of a shelf's rows."""
        asked = (self.ids, self.keys, self.agent_version, self.name, self.source, self.request_id, self.contains)
        window = (self.within.start, self.within.end, self.time_to_live, self.clusters)
        standing = self.statuses != (Status.CURRENT,)
        return any(each is not None for each in (*asked, *window)) or bool(self.tags) or standing


@dataclass(frozen=True)
class TurnFilter:
    """Which turns to search. `ids` leaves only these of them."""

    user_id: str
    request_id: str | None = None
    within: TimeRange = TimeRange()
    ids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class TurnScope:
    """Turns to learn from once more. What was published for evaluation alone is never among them."""

    user_id: str | None = None
    agent_version: str | None = None
    source: str | None = None
    within: TimeRange = TimeRange()


@dataclass(frozen=True)
class QueryVector:
    """A query as numbers, and the model that made them: only rows of the same model are compared."""

    model: str
    numbers: tuple[float, ...]


@dataclass(frozen=True)
class Matched:
    """Row numbers and scores, best first.

    By words, `coverage` tells how much of the query each row holds. `spread` is that of the scores of all rows
    searched, `mean` their mean, by vectors only. `complete` is False while most rows, or some that are known,
    cannot be found this way yet.
    """

    ids: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    coverage: tuple[float, ...] = ()
    mean: float = 0.0
    spread: float = 0.0
    complete: bool = True


@dataclass(frozen=True)
class LineageEvent:
    """Something that happened to a learning. `details` is what it takes to undo it."""

    learning_id: int
    kind: Kind
    op: str
    at: int
    actor: str = ""
    reason: str = ""
    from_status: str = ""
    to_status: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pool:
    """The user playbooks of one agent version and type, which are clustered together.

    `fresh` counts those learned since they were last gathered, the first at `fresh_since`, the last at `signalled_at`.
    `similarity` is that of the last grouping of all, by vectors of a `model`, which were `grouped` in number; 0 before
    the first. `clusters` is the last number that a cluster was given. `retry_at` is when it is looked at again whatever
    is new, because one cluster failed or somebody left.
    """

    org_id: str
    agent_version: str
    name: str
    fresh: int = 0
    fresh_since: int = 0
    signalled_at: int = 0
    model: str = ""
    similarity: float = 0.0
    grouped: int = 0
    clusters: int = 0
    attempts: int = 0
    retry_at: int = 0


class Member(NamedTuple):
    """A current user playbook as clustering sees it; `vector` is None until it is made."""

    id: int
    user_id: str
    cluster: int
    modified_at: int
    trigger: str
    content: str
    vector: bytes | None


@dataclass(frozen=True)
class Cluster:
    """How the learner last dealt with a cluster: the fingerprint of the members that it wrote about, or failed on.

    `playbook_id` is the agent playbook that came of it, 0 when what stood said it all. `centre` is the mean of its
    members' vectors in half precision.
    """

    number: int
    playbook_id: int = 0
    written: str = ""
    failed: str = ""
    attempts: int = 0
    error: str = ""
    size: int = 0
    centre: bytes | None = None


@dataclass(frozen=True)
class Unembedded:
    """A row that waits for its vector."""

    seq: int
    org_id: str
    kind: str
    row_id: int
    user_id: str
    text: str


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


class Requests(Protocol):
    def add(self, request: Request) -> None:
        """Raises Conflict when the id is taken."""
        ...

    def get(self, request_id: str) -> Request | None: ...

    def page(self, where: RequestFilter, page: Page, *, offset: int = 0) -> Listing[Request]:
        """Newest first."""
        ...

    def finish(self, user_id: str, session_id: str) -> bool:
        """Marks the newest request of a session as its last one; False when there is no such session."""
        ...

    def remove(self, where: RequestFilter) -> int:
        """Removes matching requests with their interactions and tells how many requests went."""
        ...

    def remove_ids(self, request_ids: Sequence[str]) -> int: ...

    def count(self, user_id: str | None = None) -> int: ...


class Interactions(Protocol):
    def add(self, request: Request, turns: Sequence[InteractionData]) -> None: ...

    def page(self, user_id: str | None, within: TimeRange, page: Page) -> Listing[Interaction]:
        """Newest first."""
        ...

    def of_requests(self, request_ids: Sequence[str]) -> list[Interaction]:
        """In the order they were said."""
        ...

    def unlearned(self, user_id: str, limit: int, *, request_id: str | None = None) -> list[Unlearned]:
        """A user's turns that are still to be learned from, oldest first."""
        ...

    def backlogs(self, user_ids: Sequence[str]) -> dict[str, Backlog]:
        """Of those users who have one."""
        ...

    def users(self, where: TurnScope) -> list[str]:
        """Who has turns in it, by name."""
        ...

    def within(self, where: TurnScope, user_id: str, *, last: int | None = None) -> list[Unlearned]:
        """A user's turns in it, learned from or not, oldest first; with `last`, only so many of the newest."""
        ...

    def fresh(self, ids: Sequence[int]) -> set[int]:
        """Those of them that nobody has learned from yet."""
        ...

    def before(self, user_id: str, turn_id: int, limit: int) -> list[Interaction]:
        """The turns that came before one, oldest first."""
        ...

    def mark_learned(self, ids: Sequence[int]) -> int:
        """These turns have been learned from; tells how many had not been."""
        ...

    def count_unlearned(self, request_id: str) -> int: ...

    def remove(self, user_id: str, interaction_id: int) -> int: ...

    def remove_all(self, user_id: str | None = None) -> int: ...

    def count(self, user_id: str | None = None) -> int: ...

    def count_unembedded(self, user_id: str) -> int:
        """Turns that wait for their vector."""
        ...

    def many(self, ids: Sequence[int]) -> dict[int, Interaction]: ...

    def newest(self, where: TurnFilter, limit: int) -> list[int]:
        """Newest first; of one second, the one that was said last."""
        ...

    def by_words(self, where: TurnFilter, query: str, limit: int) -> Matched: ...

    def by_vector(self, where: TurnFilter, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched: ...


class Users(Protocol):
    def mark_unlearned(self, user_id: str, now: int) -> None:
        """This user has turns that nobody has learned from yet."""
        ...

    def waiting(self, user_id: str) -> Waiting | None: ...

    def settle(self, user_id: str) -> None:
        """A window is done: the user waits no longer, unless turns are left."""
        ...

    def postpone(self, user_id: str, retry_at: int, error: str) -> None:
        """A window failed: it is tried again, not before `retry_at`."""
        ...

    def wake(self) -> int:
        """All who wait for another try may have it now. Their failures still count: each try has its own number."""
        ...

    def remove(self, user_id: str) -> int: ...


class Learnings(Protocol):
    def add(self, learnings: Sequence[Learning]) -> list[int]:
        """Stores new rows, findable by words at once, and gives their numbers. Raises Conflict on a taken key."""
        ...

    def get(self, where: LearningFilter) -> Learning | None:
        """The one row that matches, if any."""
        ...

    def many(self, ids: Sequence[int]) -> dict[int, Learning]:
        """Rows by number; missing ones are missing."""
        ...

    def page(self, where: LearningFilter, page: Page) -> Listing[Learning]:
        """Newest first."""
        ...

    def replace(self, learning: Learning) -> None:
        """The row of the same number becomes this one."""
        ...

    def move(self, where: LearningFilter, moves: Mapping[Status, Status]) -> dict[int, Status]:
        """Gives matching rows of the named statuses their new one, all at once, and nothing else of them changes.

        `where.statuses` does not count. Tells from which status each row went.
        """
        ...

    def remove(self, where: LearningFilter) -> int: ...

    def count(self, where: LearningFilter) -> int: ...

    def by_words(self, where: LearningFilter, query: str, limit: int) -> Matched:
        """Rows that pass the filter, best first by their words."""
        ...

    def by_vector(self, where: LearningFilter, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched:
        """Rows that pass the filter, nearest first, and behind them those of `also` that are not among them."""
        ...

    def note(self, *events: LineageEvent) -> None: ...

    def lineage(self, learning_id: int) -> list[LineageEvent]:
        """Oldest first."""
        ...

    def tally(self, user_id: str, now: int) -> Tally: ...


class Windows(Protocol):
    def get(self, key: str) -> LearnedWindow | None: ...

    def add(self, window: LearnedWindow) -> None: ...

    def of_turns(self, user_id: str, turn_ids: Sequence[int]) -> list[LearnedWindow]:
        """Windows that hold one of these turns, newest first."""
        ...

    def forget(self, user_id: str) -> None: ...


class Pools(Protocol):
    """Pools of user playbooks, and the clusters within them."""

    def mark(self, agent_version: str, name: str, count: int, now: int) -> None:
        """So many user playbooks were learned."""
        ...

    def get(self, agent_version: str, name: str) -> Pool:
        """An empty one where nothing was gathered yet."""
        ...

    def put(self, pool: Pool) -> None: ...

    def names(self, agent_version: str) -> list[str]:
        """The types of which there are current user playbooks."""
        ...

    def members(
        self, agent_version: str, name: str, model: str, clusters: Collection[int] | None = None
    ) -> list[Member]:
        """Current user playbooks by number, with the vectors of a model; of all clusters or some. New ones are in 0."""
        ...

    def place(self, numbers: Mapping[int, int]) -> None:
        """Gives learnings, by number, the cluster they belong to; nothing else of them changes."""
        ...

    def clusters(self, agent_version: str, name: str) -> dict[int, Cluster]: ...

    def cluster(self, agent_version: str, name: str, number: int) -> Cluster:
        """An empty one where there is none."""
        ...

    def note(self, agent_version: str, name: str, *clusters: Cluster) -> None:
        """The ones of the same numbers become these."""
        ...

    def lay(self, agent_version: str, name: str, clusters: Sequence[Cluster]) -> None:
        """These are all clusters of the pool now."""
        ...


class Receipts(Protocol):
    def get(self, key: str) -> Receipt | None: ...

    def add(self, key: str, receipt: Receipt, now: int) -> bool:
        """False, and nothing is changed, when the key is taken."""
        ...


class Configs(Protocol):
    def get(self) -> str | None:
        """The stored document as JSON."""
        ...

    def put(self, document: str, now: int) -> None: ...


class Stalls(Protocol):
    """The one stall of an organisation, if there is one."""

    def get(self) -> Stall | None: ...

    def put(self, stall: Stall) -> None: ...

    def remove(self) -> bool:
        """False when there was none."""
        ...


class Operations(Protocol):
    def add(self, operation: Operation) -> None:
        """Raises Conflict when another one of the same service is in progress."""
        ...

    def get(self, operation_id: str) -> Operation | None: ...

    def hold(self, operation_id: str) -> Operation | None:
        """The same, and nobody else changes it before this transaction ends."""
        ...

    def latest(self, service_name: str) -> Operation | None:
        """The one that was begun last."""
        ...

    def running(self, service_name: str | None = None) -> list[Operation]:
        """Those in progress, held as by `hold`; of all services unless one is named."""
        ...

    def put(self, operation: Operation) -> None:
        """The one of the same id becomes this one."""
        ...

    def trim(self, service_name: str, keep: int) -> int:
        """Removes all but the newest of a service."""
        ...

    def note(self, operation_id: str, outcome: Outcome) -> Outcome | None:
        """Keeps what became of a user, and tells what was kept before."""
        ...

    def outcomes(self, operation_id: str, limit: int) -> list[Outcome]:
        """The last ones, in the order they were noted."""
        ...

    def forget_user(self, user_id: str) -> None:
        """No operation names this user any more; their counts stay."""
        ...


class Spending(Protocol):
    def add(self, day: str, operation: str, cost: Spend) -> None:
        """Adds to what is stored of this day, operation and model."""
        ...

    def since(self, day: str) -> list[Spent]:
        """From this day on, newest day first, then by operation and model."""
        ...

    def total(self, day: str) -> Spend:
        """Of all operations and models."""
        ...


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


class Tx(Protocol):
    """One transaction of one organisation: no statement reaches beyond it."""

    @property
    def requests(self) -> Requests: ...
    @property
    def interactions(self) -> Interactions: ...
    @property
    def users(self) -> Users: ...
    @property
    def learnings(self) -> Learnings: ...
    @property
    def windows(self) -> Windows: ...
    @property
    def pools(self) -> Pools: ...
    @property
    def receipts(self) -> Receipts: ...
    @property
    def configs(self) -> Configs: ...
    @property
    def stalls(self) -> Stalls: ...
    @property
    def operations(self) -> Operations: ...
    @property
    def spending(self) -> Spending: ...
    @property
    def optimisations(self) -> Optimisations: ...


class Keys(Protocol):
    def add(self, org_id: str, label: str, prefix: str, digest: str, now: int) -> Key: ...

    def find(self, digest: str) -> Key | None:
        """The key with this digest, unless it was revoked."""
        ...

    def is_revoked(self, digest: str) -> bool:
        """Whether there was a key with this digest."""
        ...

    def list(self) -> list[Key]: ...

    def revoke(self, key_id: int, now: int) -> bool: ...


class Vectors(Protocol):
    """Vectors of all organisations, for whoever makes them."""

    def index_turns(self, limit: int) -> int:
        """Makes turns findable by words that are not yet, oldest first, and queues them; tells how many."""
        ...

    def backlog(self) -> int:
        """How many rows wait for their vector."""
        ...

    def waiting(self, limit: int) -> list[Unembedded]:
        """Rows without a vector, learnings first, then oldest first."""
        ...

    def put(self, rows: Sequence[Unembedded], model: str, vectors: Sequence[bytes]) -> None:
        """Stores half-precision vectors, unless a row has gone or changed meanwhile."""
        ...

    def skip(self, rows: Sequence[Unembedded]) -> None:
        """These rows will have no vector."""
        ...

    def postpone(self, rows: Sequence[Unembedded]) -> None:
        """These rows wait behind all others that wait."""
        ...

    def queue_all_but(self, model: str) -> int:
        """Queues every row whose vector another model made."""
        ...


class Store(Protocol):
    """The rows of one organisation."""

    @property
    def org_id(self) -> str: ...

    async def read(self, fn: Callable[[Tx], T]) -> T: ...

    async def write(self, fn: Callable[[Tx], T]) -> T: ...


class Database(Protocol):
    """All organisations. `StorageUnavailable` and its kin say what the operator must do."""

    @property
    def type(self) -> str: ...

    @property
    def label(self) -> str: ...

    def of(self, org_id: str) -> Store: ...

    @property
    def journal(self) -> Journal:
        """What durable work is under way, for the engine alone."""
        ...

    async def read_keys(self, fn: Callable[[Keys], T]) -> T: ...

    async def write_keys(self, fn: Callable[[Keys], T]) -> T: ...

    async def read_vectors(self, fn: Callable[[Vectors], T]) -> T: ...

    async def write_vectors(self, fn: Callable[[Vectors], T]) -> T: ...

    async def warm(self, model: str) -> None:
        """Reads the vectors of this model into memory, so that the first search need not."""
        ...

    async def backlog(self, limit: int, *, after: Waiting | None = None) -> list[Waiting]:
        """Users of all organisations who wait to be learned from, longest first; those that come after one of them."""
        ...

    async def pools(self, limit: int, *, after: Pool | None = None) -> list[Pool]:
        """Pools of all organisations in which something is new or to be tried again, in the order of their names."""
        ...

    async def configured(self) -> list[str]:
        """Organisations that have stored a configuration."""
        ...

    async def forget_receipts(self, before: int) -> int:
        """Of all organisations; nobody repeats a call that late."""
        ...

    async def ping(self) -> None: ...

    async def close(self) -> None: ...
