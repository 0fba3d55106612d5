"""The stored vectors of all rows, and the backlog of rows that have none yet."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Text,
    and_,
    case,
    cast,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from reflexio.models.learning import Kind, Learning
from reflexio.ports.storage import IndexBacklog, IndexCounts, RowTerms, Unembedded
from reflexio.storage.fulltext.index import FulltextIndex, stored_terms
from reflexio.storage.fulltext.terms import TermScope
from reflexio.storage.queries import attributes, in_batches, insert_for, organisations_with
from reflexio.storage.schema import index_counts, interactions, learnings, requests, unembedded, vectors
from reflexio.storage.tables.exposures import add_exposures

TURN = "interaction"
TURN_INDEX = FulltextIndex(TURN)
LEARNING_INDEX = FulltextIndex("learning")
LEARNING_LANE, TURN_LANE, INDEX_LANE = 0, 1, 2
"""Learnings and turns that wait for their vectors, and learnings of large imports that wait for their words first."""
LETTERS_AT_ONCE = 200_000
"""Letters of the rows that one write indexes: other writers wait for it. A longer row is written alone."""
EMBEDDED_LETTERS = 8_000
"""Of a text; no embedder in use reads further."""
ORGANISATIONS_AT_ONCE = 16
QUEUE_COLUMNS = ["org_id", "kind", "row_id", "lane"]
SPEAKER_ROLES = {"", "user", "agent", "assistant", "system", "human", "customer", "ai", "bot", "tool"}


def letters_of(*names: str) -> ColumnElement[int]:
    """How long these columns of a turn are together."""
    lengths = [func.coalesce(func.length(cast(interactions.c[name], Text)), 0) for name in names]
    return sum(lengths[1:], start=lengths[0])


def is_unembedded(kind: ColumnElement[str] | str, row_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a row waits for its vector."""
    return exists().where(unembedded.c.kind == kind, unembedded.c.row_id == row_id)


def queue_learnings(
    connection: Connection, org_id: str, kind: str, ids: Sequence[int], lane: int = LEARNING_LANE
) -> None:
    rows = [{"org_id": org_id, "kind": kind, "row_id": row_id, "lane": lane} for row_id in ids]
    connection.execute(insert(unembedded), rows)


def add_vectors(connection: Connection, place: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Stores the vectors of rows, instead of earlier ones; `place` is their organisation, kind and embedder."""
    connection.execute(delete(vectors).where(_is_vector_of(place["kind"], [row["row_id"] for row in rows])))
    connection.execute(insert(vectors), [{**place, **row} for row in rows])


def stored_vectors(connection: Connection, org_id: str, ids: Sequence[int], model: str) -> dict[int, bytes]:
    """The vectors of learnings. Their ids are unique among all kinds of learnings."""
    column = vectors.c
    kinds = [kind.value for kind in Kind]
    own = and_(column.org_id == org_id, column.kind.in_(kinds), column.model == model, column.vector.is_not(None))
    found: dict[int, bytes] = {}
    for batch in in_batches(ids):
        query = select(column.row_id, column.vector).where(own, column.row_id.in_(batch))
        found |= {row.row_id: row.vector for row in connection.execute(query)}
    return found


def forget_vectors(connection: Connection, kind: str, ids: Sequence[int]) -> None:
    """Removes vectors. Each leaves a new row without a vector, which tells every copy to drop it."""
    for batch in in_batches(ids, 1_000):
        connection.execute(delete(unembedded).where(unembedded.c.kind == kind, unembedded.c.row_id.in_(batch)))
        removed = _is_vector_of(kind, batch)
        rows = connection.execute(select(vectors.c.org_id, vectors.c.row_id, vectors.c.model).where(removed)).all()
        connection.execute(delete(vectors).where(removed))
        if rows and connection.dialect.name != "postgresql":  # there the database itself is searched
            connection.execute(insert(vectors), [{**row._mapping, "kind": kind, "vector": None} for row in rows])


def _is_vector_of(kind: str, ids: Sequence[int]) -> ColumnElement[bool]:
    return and_(vectors.c.kind == kind, vectors.c.row_id.in_(ids))


def _turn_text(row: Any) -> str:
    """What a turn is found by: its content, and the speaker when the role is a name."""
    is_named = row.content and row.role.strip().lower() not in SPEAKER_ROLES
    return f"{row.role}: {row.content}" if is_named else row.content


class SqlVectors:
    """Stored vectors, and the backlogs of rows without words or vectors, of all organisations.

    Whatever waits is taken from several organisations at a time, as much from each.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def to_index(self, limit: int, *, after: str = "") -> list[RowTerms]:
        turns = self._organisations(interactions.c.org_id, ~interactions.c.is_indexed, after)
        queued = self._organisations(unembedded.c.org_id, unembedded.c.lane == INDEX_LANE, after)
        names = self._in_turn([turns, queued], after)
        rows: list[RowTerms] = []
        for place, name in enumerate(names):
            left = len(names) - place
            room = (LETTERS_AT_ONCE - sum(row.letters for row in rows)) // left
            if room <= 0:
                break
            rows += self._first_to_index(name, max(1, limit // len(names)), room)
        return rows

    def _organisations(self, column: Column[str], condition: ColumnElement[bool], after: str) -> list[str]:
        return organisations_with(self._connection, column, condition, ORGANISATIONS_AT_ONCE, after)

    def _in_turn(self, names: Sequence[Sequence[str]], after: str) -> list[str]:
        """Organisations of several lists by name, those behind `after` first."""
        known = {name for some in names for name in some}
        return sorted(known, key=lambda name: (name <= after, name))[:ORGANISATIONS_AT_ONCE]

    def _first_to_index(self, org_id: str, limit: int, room: int) -> list[RowTerms]:
        """Rows of one organisation, as many as fit; one that is too long alone comes alone."""
        rows: list[RowTerms] = []
        for row, text in self._texts_to_index(org_id, limit):
            room -= row.letters
            if rows and room < 0:
                break
            rows.append(replace(row, terms=stored_terms(text), is_blank=not text.strip()))
        return rows

    def _texts_to_index(self, org_id: str, limit: int) -> Iterator[tuple[RowTerms, str]]:
        """Read one by one: texts may be long."""
        queue, column = unembedded.c, interactions.c
        queued = select(queue.seq, queue.row_id).where(queue.lane == INDEX_LANE, queue.org_id == org_id)
        for seq, row_id in self._connection.execute(queued.order_by(queue.seq).limit(limit)).all():
            for (kind, _), (user_id, text) in self._learning_texts([row_id]).items():
                yield RowTerms(org_id, user_id, kind, row_id, seq, letters=len(text)), text
        # What was in the prompt of a turn is indexed, too.
        query = select(column.id, column.user_id, column.role, column.content, letters_of("retrieved_learnings"))
        query = query.where(~column.is_indexed, column.org_id == org_id).order_by(column.id).limit(limit)
        with self._connection.execute(query) as rows:
            for row in rows:
                text = _turn_text(row)
                yield RowTerms(org_id, row.user_id, TURN, row.id, letters=len(text) + row[-1]), text

    def index(self, rows: Sequence[RowTerms]) -> None:
        self._index_turns([row for row in rows if row.kind == TURN])
        self._index_learnings([row for row in rows if row.kind != TURN])

    def _index_turns(self, turns: Sequence[RowTerms]) -> None:
        column = interactions.c
        waiting = select(column.id).where(column.id.in_([turn.id for turn in turns]), ~column.is_indexed)
        ids = set(self._connection.execute(waiting).scalars())
        new = [turn for turn in turns if turn.id in ids and not turn.is_blank]
        TURN_INDEX.put_terms(
            self._connection,
            [(turn.id, TermScope.of(turn.org_id, TURN, turn.user_id), turn.terms) for turn in new],
        )
        if new:
            queued = [{"org_id": turn.org_id, "kind": TURN, "row_id": turn.id, "lane": TURN_LANE} for turn in new]
            self._connection.execute(insert(unembedded), queued)
        if ids:
            add_exposures(self._connection, ids)
            self._connection.execute(update(interactions).where(column.id.in_(ids)).values(is_indexed=True))
            self._count("turns_indexed", len(ids))

    def _index_learnings(self, rows: Sequence[RowTerms]) -> None:
        queue = unembedded.c
        waiting = select(queue.seq).where(queue.seq.in_([row.seq for row in rows]), queue.lane == INDEX_LANE)
        places = set(self._connection.execute(waiting).scalars())
        # A row that was deleted or changed meanwhile has lost its place.
        new = [row for row in rows if row.seq in places]
        LEARNING_INDEX.put_terms(
            self._connection, [(row.id, TermScope.of(row.org_id, row.kind, row.user_id), row.terms) for row in new]
        )
        if new:
            change = update(unembedded).where(queue.seq.in_([row.seq for row in new]))
            self._connection.execute(change.values(lane=LEARNING_LANE))

    def counts(self) -> IndexCounts:
        rows = self._connection.execute(select(index_counts.c.name, index_counts.c.count)).tuples()
        return IndexCounts(**dict(rows.all()))

    def count_failure(self) -> None:
        self._count("embedding_failures", 1)

    def _count(self, name: str, number: int) -> None:
        statement = insert_for(self._connection.dialect.name)(index_counts)
        total = {"count": index_counts.c.count + statement.excluded.count}
        counted = statement.on_conflict_do_update(index_elements=["name"], set_=total)
        self._connection.execute(counted, {"name": name, "count": number})

    def backlog(self) -> IndexBacklog:
        turn, queue = interactions.c, unembedded.c
        counted = select(queue.lane, func.count(), func.min(queue.seq)).group_by(queue.lane)
        lanes = {row[0]: (row[1], row[2]) for row in self._connection.execute(counted)}
        not_indexed = self._connection.execute(select(func.count(), func.min(turn.id)).where(~turn.is_indexed)).one()
        learned, (turns, first_turn) = lanes.get(LEARNING_LANE, (0, None)), lanes.get(TURN_LANE, (0, None))
        added, first_added = lanes.get(INDEX_LANE, (0, None))
        without_words = (self._published_at(not_indexed[1]), self._stored_at(first_added))
        since = (self._stored_at(learned[1]), self._stored_at(first_turn))
        return IndexBacklog(
            not_indexed[0],
            added,
            min((moment for moment in without_words if moment), default=0),
            learned[0],
            turns,
            min((moment for moment in since if moment), default=0),
        )

    def _stored_at(self, seq: int | None) -> int:
        """When the row of a place in the queue was stored, as far as it is still there."""
        if seq is None:
            return 0
        query = select(unembedded.c.kind, unembedded.c.row_id).where(unembedded.c.seq == seq)
        kind, row_id = self._connection.execute(query).one()
        if kind == TURN:
            return self._published_at(row_id)
        changed = select(learnings.c.modified_at).where(learnings.c.id == row_id)
        return int(self._connection.execute(changed).scalar_one_or_none() or 0)

    def _published_at(self, turn_id: int | None) -> int:
        """By the server's clock; turns may state times of their own."""
        if turn_id is None:
            return 0
        turn = interactions.c
        query = select(requests.c.created_at).where(
            turn.id == turn_id, requests.c.org_id == turn.org_id, requests.c.request_id == turn.request_id
        )
        return int(self._connection.execute(query).scalars().first() or 0)

    def waiting(self, limit: int, *, after: str = "") -> list[Unembedded]:
        queue = unembedded.c
        lanes = [self._organisations(queue.org_id, queue.lane == lane, after) for lane in (LEARNING_LANE, TURN_LANE)]
        names = self._in_turn(lanes, after)
        rows: list[Any] = []
        for place, name in enumerate(names):
            # What one leaves free is for those behind it.
            rows += self._first_waiting(name, -(-(limit - len(rows)) // (len(names) - place)))
        texts = self._turn_texts([row.row_id for row in rows if row.kind == TURN])
        texts |= self._learning_texts([row.row_id for row in rows if row.kind != TURN], EMBEDDED_LETTERS)
        return [
            Unembedded(row.seq, row.org_id, row.kind, row.row_id, *texts.get((row.kind, row.row_id), ("", "")))
            for row in rows
        ]

    def _first_waiting(self, org_id: str, limit: int) -> list[Any]:
        queue, rows = unembedded.c, list[Any]()
        for lane in (LEARNING_LANE, TURN_LANE):
            if room := limit - len(rows):
                query = select(unembedded).where(queue.lane == lane, queue.org_id == org_id).order_by(queue.seq)
                rows += self._connection.execute(query.limit(room)).all()
        return rows

    def _turn_texts(self, ids: Sequence[int]) -> dict[tuple[str, int], tuple[str, str]]:
        column = interactions.c
        content = func.substr(column.content, 1, EMBEDDED_LETTERS).label("content")
        query = select(column.id, column.user_id, column.role, content).where(column.id.in_(ids))
        return {(TURN, row.id): (row.user_id, _turn_text(row)) for row in self._connection.execute(query)}

    def _learning_texts(self, ids: Sequence[int], letters: int | None = None) -> dict[tuple[str, int], tuple[str, str]]:
        column = learnings.c
        texts = [
            part if letters is None else func.substr(part, 1, letters).label(part.name)
            for part in (column.trigger, column.content)
        ]
        query = select(column.id, column.kind, column.user_id, *texts).where(column.id.in_(ids))
        return {
            (row.kind, row.id): (row.user_id, Learning(Kind(row.kind), row.content, trigger=row.trigger).text)
            for row in self._connection.execute(query)
        }

    def put(self, rows: Sequence[Unembedded], model: str, embedded: Sequence[bytes]) -> None:
        queued = select(unembedded.c.seq).where(unembedded.c.seq.in_([row.seq for row in rows]))
        still_queued = set(self._connection.execute(queued).scalars())
        # A row that was queued twice gets the last of its vectors.
        new = {
            (row.kind, row.row_id): (row, vector)
            for row, vector in zip(rows, embedded, strict=True)
            if row.seq in still_queued
        }
        for kind in {row.kind for row in rows}:
            ids = [row_id for row_kind, row_id in new if row_kind == kind]
            self._connection.execute(delete(vectors).where(_is_vector_of(kind, ids)))
        if new:
            names = ("org_id", "kind", "row_id", "user_id")
            stored = [{**attributes(row, names), "model": model, "vector": vector} for row, vector in new.values()]
            self._connection.execute(insert(vectors), stored)
            self._count("rows_embedded", len(new))
        self.skip(rows)

    def skip(self, rows: Sequence[Unembedded]) -> None:
        self._connection.execute(delete(unembedded).where(unembedded.c.seq.in_([row.seq for row in rows])))

    def postpone(self, rows: Sequence[Unembedded]) -> None:
        queue = unembedded.c
        again = select(*(queue[name] for name in QUEUE_COLUMNS)).where(queue.seq.in_([row.seq for row in rows]))
        self._connection.execute(insert(unembedded).from_select(QUEUE_COLUMNS, again.order_by(queue.seq)))
        self.skip(rows)

    def queue_all_but(self, model: str) -> int:
        # Copies are built after this, so that no copy needs to be told about removed rows.
        self._connection.execute(delete(vectors).where(vectors.c.vector.is_(None)))
        # A vector that is queued once is not queued again by the next start.
        queued_before = f"was:{model}"
        outdated = vectors.c.model.not_in([model, queued_before]) & vectors.c.vector.is_not(None)
        lane = case((vectors.c.kind == TURN, TURN_LANE), else_=LEARNING_LANE)
        rows = select(vectors.c.org_id, vectors.c.kind, vectors.c.row_id, lane).where(outdated)
        queue = insert(unembedded).from_select(QUEUE_COLUMNS, rows)
        queued = self._connection.execute(queue, execution_options={"preserve_rowcount": True}).rowcount
        self._connection.execute(update(vectors).where(outdated).values(model=queued_before))
        return queued
