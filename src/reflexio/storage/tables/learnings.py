"""Learnings (profiles, user playbooks, agent playbooks), their lineage, and the windows that were learned from."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Text,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from reflexio.errors import Conflict
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Scope, Status
from reflexio.models.paging import Listing, Page
from reflexio.ports.storage import (
    NO_VECTORS,
    Days,
    FinishedStep,
    LearnedWindow,
    LearningCounts,
    LearningFilter,
    LineageEvent,
    Matched,
    QueryVector,
    TextVectors,
)
from reflexio.storage.compiled import CompiledQuery
from reflexio.storage.fulltext.prepared import PreparedTerms
from reflexio.storage.fulltext.terms import TermScope
from reflexio.storage.queries import OrganisationRows, attributes, in_batches, owned_by, within_letters
from reflexio.storage.schema import finished_steps, learnings, lineage, windows
from reflexio.storage.tables.counters import WINDOW_COUNTERS, count
from reflexio.storage.tables.embeddings import (
    INDEX_LANE,
    LETTERS_AT_ONCE,
    add_vectors,
    forget_vectors,
    is_unembedded,
    queue_learnings,
    stored_vectors,
)
from reflexio.storage.tables.embeddings import LEARNING_INDEX as FULLTEXT
from reflexio.storage.tables.exposures import forget_learnings
from reflexio.storage.tables.filters import allowed_rows_query, count_query, filter_condition, filter_values, ids_query
from reflexio.storage.tables.optimisations import remove_optimisations
from reflexio.storage.vectors.search import VectorSearch

REMOVED_ROWS = 200
"""In one write, which every other writer waits for."""
LISTED_AT_MOST = 5_000
"""The largest number of rows that pass a filter that is read as a list of ids."""
COLUMNS = list(learnings.c)
CONVERTED = ("kind", "id", "key", "tags", "status", "review", "scope")
NAMES = [str(column.name) for column in COLUMNS]
COPIED = [name for name in Learning.__dataclass_fields__ if name not in CONVERTED]
LINEAGE_FIELDS = ("learning_id", "op", "actor", "reason", "from_status", "to_status")
WINDOW_FIELDS = list(LearnedWindow.__dataclass_fields__)
# In the words of the index.
IS_SET_ASIDE = windows.c.state == literal_column("'set_aside'", Text)
WINDOW_COLUMNS = [windows.c[name] for name in WINDOW_FIELDS]
STEP_FIELDS = list(FinishedStep.__dataclass_fields__)
STEP_COLUMNS = [finished_steps.c[name] for name in STEP_FIELDS]
STEPS_OF_USER = CompiledQuery(
    select(*STEP_COLUMNS).where(
        finished_steps.c.org_id == bindparam("org"), finished_steps.c.user_id == bindparam("user")
    )
)
LEARNINGS_BY_ID = CompiledQuery(
    select(*COLUMNS).where(
        owned_by(learnings.c.org_id, bindparam("org")), learnings.c.id.in_(bindparam("ids", expanding=True))
    )
)


def _row(org_id: str, learning: Learning) -> dict[str, Any]:
    return {
        "org_id": org_id,
        "kind": learning.kind.value,
        "key": learning.key or None,
        "tags": "|".join(("", *learning.tags, "")) if learning.tags else "",
        "status": learning.status.value,
        "scope": learning.scope.value,
        "review": learning.review.value if learning.kind is Kind.AGENT_PLAYBOOK else "",
        **attributes(learning, COPIED),
    }


def read_learning(row: Sequence[Any]) -> Learning:
    stored = dict(zip(NAMES, row, strict=True))
    tags, review = stored["tags"], stored["review"]
    return Learning(
        kind=Kind(stored["kind"]),
        id=stored["id"],
        key=stored["key"] or "",
        tags=tuple(tags.strip("|").split("|")) if tags else (),
        status=Status(stored["status"]),
        scope=Scope(stored["scope"]),
        review=PlaybookStatus(review) if review else PlaybookStatus.PENDING,
        **{name: stored[name] for name in COPIED},
    )


class SqlLearnings(OrganisationRows):
    def __init__(
        self, connection: Connection, org_id: str, vectors: VectorSearch, terms: PreparedTerms | None = None
    ) -> None:
        super().__init__(connection, org_id)
        self._vectors = vectors
        self._terms = terms or PreparedTerms()
        # Answers about filters, kept until this transaction changes a row: both halves of a search ask the same.
        self._passing_ids: dict[LearningFilter, frozenset[int] | None] = {}
        self._passes_all: dict[LearningFilter, bool] = {}

    def _forget_filters(self) -> None:
        self._passing_ids.clear()
        self._passes_all.clear()

    def _where(self, where: LearningFilter) -> ColumnElement[bool]:
        return filter_condition(filter_values(where, self._org))

    def add(self, new: Sequence[Learning], vectors: TextVectors = NO_VECTORS) -> list[int]:
        self._forget_filters()
        rows = [_row(self._org, learning) for learning in new]
        try:
            # Undone as a whole when a key is taken: only then do the stored keys tell which one it was.
            with self._connection.begin_nested():
                # One statement for many rows, which are numbered in their order. One statement for each row inside a
                # savepoint makes SQLite walk through its whole journal each time: seconds for a thousand rows.
                ids = sorted(self._connection.execute(insert(learnings).returning(learnings.c.id), rows).scalars())
        except IntegrityError:
            taken = self._taken_key([learning.key for learning in new])
            raise Conflict(f"A profile with the id {taken!r} exists; leave the id out to get a new one.") from None
        self._index(ids, new, vectors)
        return ids

    def _taken_key(self, keys: list[str]) -> str:
        query = select(learnings.c.key).where(learnings.c.org_id == self._org, learnings.c.key.in_(keys))
        stored = self._connection.execute(query).scalars().first()
        return str(stored or next(key for key in keys if keys.count(key) > 1))

    def _index(self, ids: Sequence[int], rows: Sequence[Learning], vectors: TextVectors) -> None:
        kind = rows[0].kind.value
        if not self._terms.fits([learning.text for learning in rows]):
            # Words first, in the background: it queues them for their vectors afterwards.
            FULLTEXT.drop(self._connection, ids)
            queue_learnings(self._connection, self._org, kind, ids, INDEX_LANE)
            return
        terms = (
            (row_id, TermScope.of(self._org, learning.kind, learning.user_id), self._terms.of(learning.text))
            for row_id, learning in zip(ids, rows, strict=True)
        )
        FULLTEXT.put_terms(self._connection, [(row_id, scope, of_row or "") for row_id, scope, of_row in terms])
        embedded = [
            {"row_id": row_id, "user_id": learning.user_id, "vector": vectors.of[learning.text]}
            for row_id, learning in zip(ids, rows, strict=True)
            if learning.text in vectors.of
        ]
        if embedded:
            add_vectors(self._connection, {"org_id": self._org, "kind": kind, "model": vectors.model}, embedded)
        if waiting := sorted(set(ids).difference(row["row_id"] for row in embedded)):
            queue_learnings(self._connection, self._org, kind, waiting)

    def get(self, where: LearningFilter) -> Learning | None:
        return self._one(select(*COLUMNS).where(self._where(where)).limit(1), read_learning)

    def many(self, ids: Sequence[int]) -> dict[int, Learning]:
        values = ({"org": self._org, "ids": list(batch)} for batch in in_batches(ids))
        rows = (row for some in values for row in LEARNINGS_BY_ID.rows(self._connection, some))
        return {row[0]: read_learning(row) for row in rows}

    def of_requests(self, request_ids: Sequence[str], limit: int) -> list[Learning]:
        own = learnings.c.org_id == self._org, learnings.c.request_id.in_(request_ids), learnings.c.request_id != ""
        return self._rows(select(*COLUMNS).where(*own).order_by(learnings.c.id).limit(limit), read_learning)

    def page(self, where: LearningFilter, page: Page) -> Listing[Learning]:
        return self._page(select(*COLUMNS).where(self._where(where)), learnings, page, read_learning)

    def replace(self, learning: Learning, vectors: TextVectors = NO_VECTORS) -> None:
        self._forget_filters()
        own = and_(learnings.c.org_id == self._org, learnings.c.id == learning.id)
        query = select(learnings.c.trigger, learnings.c.content, learnings.c.user_id).where(own)
        before = self._connection.execute(query).one()
        self._change(update(learnings).where(own).values(**_row(self._org, learning)))
        if tuple(before) != (learning.trigger, learning.content, learning.user_id):
            # The vector of the old text would find this row by that text.
            forget_vectors(self._connection, learning.kind.value, [learning.id])
            self._index([learning.id], [learning], vectors)

    def vectors(self, ids: Sequence[int], model: str) -> dict[int, bytes]:
        return stored_vectors(self._connection, self._org, ids, model)

    def move(self, where: LearningFilter, moves: Mapping[Status, Status]) -> dict[int, Status]:
        self._forget_filters()
        moved = self._where(replace(where, statuses=tuple(moves), or_in_review=False))
        rows = self._connection.execute(select(learnings.c.id, learnings.c.status).where(moved)).all()
        after = case({before.value: to.value for before, to in moves.items()}, value=learnings.c.status)
        self._change(update(learnings).where(moved).values(status=after))
        return {row.id: Status(row.status) for row in rows}

    def remove_some(self, where: LearningFilter) -> int:
        letters = func.length(learnings.c.content) + func.length(learnings.c.trigger)
        query = select(learnings.c.id, letters).where(self._where(where)).order_by(learnings.c.id)
        rows = self._connection.execute(query.limit(REMOVED_ROWS))
        ids = tuple(number for number, _ in within_letters(rows, LETTERS_AT_ONCE))
        return self.remove(replace(where, ids=ids)) if ids else 0

    def remove(self, where: LearningFilter) -> int:
        self._forget_filters()
        rows = self._connection.execute(select(learnings.c.id, learnings.c.key).where(self._where(where))).all()
        ids = [row.id for row in rows]
        forget_learnings(self._connection, self._org, where.kind, [row.key or str(row.id) for row in rows])
        FULLTEXT.drop(self._connection, ids)
        forget_vectors(self._connection, where.kind.value, ids)
        self._change(delete(learnings).where(self._where(where)))
        # Reasons and former wordings may quote what is deleted.
        for batch in in_batches(ids):
            self._change(delete(lineage).where(lineage.c.org_id == self._org, lineage.c.learning_id.in_(batch)))
        if where.kind is not Kind.PROFILE:
            remove_optimisations(self._connection, self._org, where.kind.value, ids)
        return len(ids)

    def count(self, where: LearningFilter) -> int:
        return self._count(learnings, self._where(where))

    def count_up_to(self, where: LearningFilter, most: int) -> int:
        few = select(learnings.c.id).where(self._where(where)).limit(most).subquery()
        return int(self._connection.execute(select(func.count()).select_from(few)).scalar_one())

    def count_by_day(self, kind: Kind, days: Days) -> dict[int, int]:
        return self._count_by_day(learnings, days, learnings.c.kind == kind.value)

    def count_requests(self, where: LearningFilter) -> int:
        sources = self._where(where), learnings.c.request_id != ""
        return int(
            self._connection.execute(select(func.count(learnings.c.request_id.distinct())).where(*sources)).scalar_one()
        )

    def by_words(self, where: LearningFilter, query: str, limit: int) -> Matched:
        return FULLTEXT.match(
            self._connection,
            TermScope.of(self._org, where.kind, where.user_id),
            query,
            limit,
            lambda ids: self._passing(where, ids),
            lambda: None if self._all_pass(where) else self._listed(where),
            is_narrow=where.is_narrow or where.reviews is not None,
        )

    def by_vector(self, where: LearningFilter, query: QueryVector, limit: int, also: Sequence[int] = ()) -> Matched:
        vectors = self._vectors.of(self._org, where.kind.value, query.model)
        is_listed = where.is_narrow or (where.user_id is not None and not self._all_pass(where))
        within = self._listed(where) if is_listed else None
        return vectors.nearest(
            query.numbers,
            limit,
            also,
            lambda ids: self._passing(where, ids),
            complete=vectors.catch_up(self._connection),
            stored=self._indexed(where) if within is None else len(within),
            user=where.user_id if within is None else None,
            within=within,
        )

    def _passing(self, where: LearningFilter, ids: Sequence[int]) -> Collection[int]:
        if where.user_id is not None:
            if self._all_pass(where):
                return ids
            if (passing := self._few_passing(where)) is not None:
                return passing.intersection(ids)
        values = filter_values(where, self._org, by_id=True)
        query = allowed_rows_query(tuple(values))
        batches = (query.rows(self._connection, {**values, "among": list(batch)}) for batch in in_batches(ids))
        return {row_id for rows in batches for (row_id,) in rows}

    def _indexed(self, where: LearningFilter) -> int:
        """How many rows the search can find, before filtering."""
        return FULLTEXT.count(self._connection, TermScope.of(self._org, where.kind, where.user_id))

    def _all_pass(self, where: LearningFilter) -> bool:
        """Whether every row of a user passes. Counting is cheaper than listing, and usually enough."""
        if where.user_id is None or where.is_narrow:
            return False
        if where not in self._passes_all:
            values = filter_values(where, self._org)
            ((count,),) = count_query(tuple(values)).rows(self._connection, values)
            self._passes_all[where] = count == self._indexed(where)
        return self._passes_all[where]

    def _few_passing(self, where: LearningFilter) -> frozenset[int] | None:
        """The rows that pass, or None when they are so many that asking about candidates is cheaper."""
        if where not in self._passing_ids:
            values = filter_values(where, self._org)
            rows = ids_query(tuple(values)).rows(self._connection, {**values, "most": LISTED_AT_MOST + 1})
            few = len(rows) <= LISTED_AT_MOST
            self._passing_ids[where] = frozenset(row_id for (row_id,) in rows) if few else None
        return self._passing_ids[where]

    def _listed(self, where: LearningFilter) -> list[int] | None:
        passing = self._few_passing(where)
        return None if passing is None else sorted(passing)

    def note(self, *events: LineageEvent) -> None:
        rows = [
            {
                "org_id": self._org,
                "kind": event.kind.value,
                "details": event.details or None,
                "created_at": event.at,
                **attributes(event, LINEAGE_FIELDS),
            }
            for event in events
        ]
        if rows:
            self._connection.execute(insert(lineage), rows)

    def lineage(self, learning_id: int) -> list[LineageEvent]:
        query = select(lineage).where(lineage.c.org_id == self._org, lineage.c.learning_id == learning_id)
        return [
            LineageEvent(
                kind=Kind(row.kind), at=row.created_at, details=row.details or {}, **attributes(row, LINEAGE_FIELDS)
            )
            for row in self._connection.execute(query.order_by(lineage.c.id))
        ]

    def count_learnings(self, user_id: str, now: int) -> LearningCounts:
        profile = LearningFilter(Kind.PROFILE, user_id=user_id, alive_at=now)
        playbook = replace(profile, kind=Kind.USER_PLAYBOOK)
        times = select(func.min(learnings.c.modified_at), func.max(learnings.c.modified_at))
        oldest, newest = self._connection.execute(times.where(self._where(profile))).one()
        own = learnings.c.org_id == self._org, learnings.c.user_id == user_id
        unembedded = self._count(learnings, *own, is_unembedded(learnings.c.kind, learnings.c.id))
        return LearningCounts(self.count(profile), self.count(playbook), oldest or 0, newest or 0, unembedded)


def _read_window(row: Any) -> LearnedWindow:
    return LearnedWindow(**{**row._mapping, "turn_ids": tuple(row.turn_ids)})


class SqlWindows(OrganisationRows):
    def get(self, key: str) -> LearnedWindow | None:
        query = select(*WINDOW_COLUMNS).where(windows.c.org_id == self._org, windows.c.key == key)
        return self._one(query, _read_window)

    def add(self, window: LearnedWindow) -> None:
        row = {**attributes(window, WINDOW_FIELDS), "turn_ids": list(window.turn_ids)}
        self._connection.execute(insert(windows), {"org_id": self._org, **row})
        count(self._connection, WINDOW_COUNTERS[window.state])

    def of_turns(self, user_id: str, turn_ids: Sequence[int]) -> list[LearnedWindow]:
        query = select(*WINDOW_COLUMNS).where(windows.c.org_id == self._org, windows.c.user_id == user_id)
        newest_first = self._rows(query.order_by(windows.c.created_at.desc()), _read_window)
        return [window for window in newest_first if not set(turn_ids).isdisjoint(window.turn_ids)]

    def set_aside(self, limit: int) -> list[LearnedWindow]:
        query = select(*WINDOW_COLUMNS).where(windows.c.org_id == self._org, IS_SET_ASIDE)
        return self._rows(query.order_by(windows.c.created_at.desc()).limit(limit), _read_window)

    def finished_steps(self, user_id: str) -> list[FinishedStep]:
        rows = STEPS_OF_USER.rows(self._connection, {"org": self._org, "user": user_id})
        steps = (dict(zip(STEP_FIELDS, row, strict=True)) for row in rows)
        return [FinishedStep(**{**step, "turn_ids": tuple(step["turn_ids"])}) for step in steps]

    def keep_step(self, step: FinishedStep) -> None:
        steps = finished_steps.c
        same = steps.user_id == step.user_id, steps.window_key == step.window_key, steps.step == step.step
        self._connection.execute(delete(finished_steps).where(steps.org_id == self._org, *same))
        row = {**attributes(step, STEP_FIELDS), "turn_ids": list(step.turn_ids)}
        self._connection.execute(insert(finished_steps), {"org_id": self._org, **row})

    def drop_steps(self, user_id: str, turn_ids: Sequence[int]) -> None:
        steps = finished_steps.c
        of_user = self.finished_steps(user_id)
        shared = {step.window_key for step in of_user if not set(turn_ids).isdisjoint(step.turn_ids)}
        if shared:
            where = steps.org_id == self._org, steps.user_id == user_id, steps.window_key.in_(shared)
            self._connection.execute(delete(finished_steps).where(*where))
