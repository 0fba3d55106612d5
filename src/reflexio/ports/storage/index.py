"""Search by words and by vectors, and the backlog of rows without a vector."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class QueryVector:
    """A query's vector and its embedder: only rows of the same embedder are compared."""

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
class TextVectors:
    """Half-precision vectors of texts that are about to be stored, and their embedder."""

    model: str = ""
    of: Mapping[str, bytes] = field(default_factory=dict)


NO_VECTORS = TextVectors()


@dataclass(frozen=True)
class Unembedded:
    """A row without a vector."""

    seq: int
    org_id: str
    kind: str
    row_id: int
    user_id: str
    text: str


@dataclass(frozen=True)
class IndexBacklog:
    """Rows of all organisations that search cannot find completely yet; `since` is when the oldest was stored.

    Both times are 0 where nothing waits.
    """

    turns_not_indexed: int = 0
    learnings_not_indexed: int = 0
    not_indexed_since: int = 0
    learnings_without_vector: int = 0
    turns_without_vector: int = 0
    without_vector_since: int = 0


@dataclass(frozen=True)
class IndexCounts:
    """What was done by all processes since the database was created."""

    turns_indexed: int = 0
    rows_embedded: int = 0
    embedding_failures: int = 0


@dataclass(frozen=True)
class RowTerms:
    """A turn or learning that is about to be indexed: whose it is, its place in the queue, its terms as stored.

    A blank one is only marked. `letters` tells how long it takes.
    """

    org_id: str
    user_id: str
    kind: str
    id: int
    seq: int = 0
    terms: str = ""
    is_blank: bool = False
    letters: int = 0


class Vectors(Protocol):
    """The vectors of all organisations, for the embedding backlog."""

    def to_index(self, limit: int, *, after: str = "") -> list[RowTerms]:
        """Rows that are not in the word index with their terms, fewer where they are long.

        They are the oldest of several organisations, as many of each; those behind `after` come first. Terms are made
        while reading: every writer waits for what is done in a write.
        """

    def index(self, rows: Sequence[RowTerms]) -> None:
        """Adds rows to the word index and queues them for embedding, except those deleted or changed meanwhile."""

    def counts(self) -> IndexCounts: ...

    def count_failure(self) -> None:
        """An attempt to embed rows has failed."""

    def backlog(self) -> IndexBacklog:
        """What waits for the word index or for a vector. A turn that is not indexed counts once, for the former."""

    def waiting(self, limit: int, *, after: str = "") -> list[Unembedded]:
        """Rows without a vector. Their texts end where embedders stop reading.

        They are those of several organisations, as many of each, those behind `after` first; of one organisation its
        learnings before its turns, then the oldest.
        """

    def put(self, rows: Sequence[Unembedded], model: str, vectors: Sequence[bytes]) -> None:
        """Stores half-precision vectors, except for rows that were deleted or changed meanwhile."""

    def skip(self, rows: Sequence[Unembedded]) -> None:
        """Marks rows that will have no vector."""

    def postpone(self, rows: Sequence[Unembedded]) -> None:
        """Moves rows to the end of the queue."""

    def queue_all_but(self, model: str) -> int:
        """Queues every row whose vector is of another embedder."""
