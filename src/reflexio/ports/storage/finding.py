"""Finding rows by words and by vectors, and the vectors that are still to be made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


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
class Unembedded:
    """A row that waits for its vector."""

    seq: int
    org_id: str
    kind: str
    row_id: int
    user_id: str
    text: str


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
