"""The vectors of all rows, and the queue of rows that have none yet."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, and_, case, delete, exists, func, insert, select, update

from reflexio.models.learning import Kind, Learning
from reflexio.ports.storage import Unembedded
from reflexio.storage.schema import interactions, learnings, unembedded, vectors
from reflexio.storage.search.scope import Scope
from reflexio.storage.search.sqlite import WordTables
from reflexio.storage.search.words import Row, Words

TURN = "interaction"
LEARNINGS, TURNS = 0, 1
TURN_WORDS = Words(TURN)
SIDES = {"", "user", "agent", "assistant", "system", "human", "customer", "ai", "bot", "tool"}


def spoken(role: str, content: str) -> str:
    """What a turn is found by: its words, and who said them when that is a name."""
    return content if role.strip().lower() in SIDES or not content else f"{role}: {content}"


def findable(connection: Connection, words: Words, scope: Scope) -> int:
    """How many rows of a scope there are to be found, with or without a vector."""
    return WordTables(connection, words.entity).size(scope.narrowest).rows


def without_vector(kind: ColumnElement[str] | str, row_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a row waits for its vector."""
    return exists().where(unembedded.c.kind == kind, unembedded.c.row_id == row_id)


def enqueue(connection: Connection, org_id: str, kind: str, ids: Sequence[int]) -> None:
    rows = [{"org_id": org_id, "kind": kind, "row_id": number, "lane": LEARNINGS} for number in ids]
    connection.execute(insert(unembedded), rows)


def forget(connection: Connection, kind: str, ids: Sequence[int]) -> None:
    """Removed rows leave a number without a vector, which tells every copy to drop them."""
    for start in range(0, len(ids), 1000):
        some = ids[start : start + 1000]
        connection.execute(delete(unembedded).where(unembedded.c.kind == kind, unembedded.c.row_id.in_(some)))
        gone = _of(kind, some)
        rows = connection.execute(select(vectors.c.org_id, vectors.c.row_id, vectors.c.model).where(gone)).all()
        connection.execute(delete(vectors).where(gone))
        if rows:
            connection.execute(
                insert(vectors),
                [
                    {"org_id": org, "kind": kind, "row_id": row, "model": model, "vector": None}
                    for org, row, model in rows
                ],
            )


def _of(kind: str, ids: Sequence[int]) -> ColumnElement[bool]:
    return and_(vectors.c.kind == kind, vectors.c.row_id.in_(ids))


class SqlVectors:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def index_turns(self, limit: int) -> int:
        column = interactions.c
        head = select(column.id, column.org_id, column.user_id, column.role, column.content)
        rows = self._connection.execute(head.where(~column.is_indexed).order_by(column.id).limit(limit)).all()
        said = [row for row in rows if row.content.strip()]
        if said:
            scopes = [Scope.of(row.org_id, TURN, row.user_id) for row in said]
            made = [Row(row.id, scope, spoken(row.role, row.content)) for row, scope in zip(said, scopes, strict=True)]
            TURN_WORDS.put(self._connection, made)
            queued = [{"org_id": row.org_id, "kind": TURN, "row_id": row.id, "lane": TURNS} for row in said]
            self._connection.execute(insert(unembedded), queued)
        if rows:
            done = interactions.c.id.in_([row.id for row in rows])
            self._connection.execute(update(interactions).where(done).values(is_indexed=True))
        return len(rows)

    def backlog(self) -> int:
        return int(self._connection.execute(select(func.count()).select_from(unembedded)).scalar_one())

    def waiting(self, limit: int) -> list[Unembedded]:
        head = select(unembedded).order_by(unembedded.c.lane, unembedded.c.seq).limit(limit)
        rows = self._connection.execute(head).all()
        texts = self._turns([row.row_id for row in rows if row.kind == TURN])
        texts |= self._learnings([row.row_id for row in rows if row.kind != TURN])
        return [
            Unembedded(row.seq, row.org_id, row.kind, row.row_id, *texts.get((row.kind, row.row_id), ("", "")))
            for row in rows
        ]

    def _turns(self, ids: Sequence[int]) -> dict[tuple[str, int], tuple[str, str]]:
        query = select(interactions.c.id, interactions.c.user_id, interactions.c.role, interactions.c.content)
        found = self._connection.execute(query.where(interactions.c.id.in_(ids)))
        return {(TURN, row.id): (row.user_id, spoken(row.role, row.content)) for row in found}

    def _learnings(self, ids: Sequence[int]) -> dict[tuple[str, int], tuple[str, str]]:
        column = learnings.c
        query = select(column.id, column.kind, column.user_id, column.trigger, column.content)
        found = self._connection.execute(query.where(column.id.in_(ids)))
        return {
            (row.kind, row.id): (row.user_id, Learning(Kind(row.kind), row.content, trigger=row.trigger).text)
            for row in found
        }

    def put(self, rows: Sequence[Unembedded], model: str, made: Sequence[bytes]) -> None:
        here = unembedded.c.seq.in_([row.seq for row in rows])
        still = set(self._connection.execute(select(unembedded.c.seq).where(here)).scalars())
        fresh = {
            (row.kind, row.row_id): (row, vector) for row, vector in zip(rows, made, strict=True) if row.seq in still
        }
        for kind in {row.kind for row in rows}:
            ids = [row_id for each, row_id in fresh if each == kind]
            self._connection.execute(delete(vectors).where(_of(kind, ids)))
        if fresh:
            self._connection.execute(
                insert(vectors),
                [
                    {
                        "org_id": row.org_id,
                        "kind": row.kind,
                        "row_id": row.row_id,
                        "user_id": row.user_id,
                        "model": model,
                        "vector": vector,
                    }
                    for row, vector in fresh.values()
                ],
            )
        self.skip(rows)

    def skip(self, rows: Sequence[Unembedded]) -> None:
        self._connection.execute(delete(unembedded).where(unembedded.c.seq.in_([row.seq for row in rows])))

    def postpone(self, rows: Sequence[Unembedded]) -> None:
        column = unembedded.c
        here = column.seq.in_([row.seq for row in rows])
        again = select(column.org_id, column.kind, column.row_id, column.lane).where(here).order_by(column.seq)
        self._connection.execute(insert(unembedded).from_select(["org_id", "kind", "row_id", "lane"], again))
        self.skip(rows)

    def queue_all_but(self, model: str) -> int:
        # Whoever keeps a copy reads it after this: numbers of removed rows have nobody left to tell.
        self._connection.execute(delete(vectors).where(vectors.c.vector.is_(None)))
        lane = case((vectors.c.kind == TURN, TURNS), else_=LEARNINGS)
        queued_before = f"was:{model}"
        other = vectors.c.model.not_in([model, queued_before]) & vectors.c.vector.is_not(None)
        queued = self._connection.execute(
            insert(unembedded).from_select(
                ["org_id", "kind", "row_id", "lane"],
                select(vectors.c.org_id, vectors.c.kind, vectors.c.row_id, lane).where(other),
            )
        ).rowcount
        # A vector that is queued once is not queued again by the next start.
        self._connection.execute(update(vectors).where(other).values(model=queued_before))
        return queued
